package controller

import (
	"time"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
)

// forwardPatience is how long content stays between two revisions without a try
// that writes to it.
const forwardPatience = time.Minute

// Remains says what became of the parts of a revision that was begun and that
// this pass could not take further. It is empty if there are none.
type Remains string

const (
	// RemainsStay: they are left as they are for some time.
	RemainsStay Remains = "Stay"

	// RemainsTakenBack: what is installed is repaired, which undoes their changes to
	// what the installed revision sets.
	RemainsTakenBack Remains = "TakenBack"
)

// stranded is the rule for content that a failed try has left between the installed
// revision and another one, in a pass that could write nothing more of the other
// one, for whatever reason. since is when that was first so.
//
// What is in the way is often gone soon: a process that has just started has not
// read its catalogs yet, a registry restarts. To undo what the next pass does again
// would be a fight with ourselves, so at first the content is left alone. But a
// mixture that nobody has tested must not stay, and damage to it would be repaired
// by nobody. The way back is always open, because the record has all of the
// installed revision; the way on ends at one that has failed already. So after some
// time the installed one is repaired. Objects that only the other one has stay in
// its record, and go with the next revision that succeeds.
func stranded(since, now time.Time) (_ Remains, remaining time.Duration) {
	if remaining := since.Add(forwardPatience).Sub(now); remaining > 0 {
		return RemainsStay, remaining
	}
	return RemainsTakenBack, 0
}

// remains notes that this pass takes nothing further of what was begun, if
// anything was.
func (r *Reconciler) remains(extension string, installation installation.State) (Remains, time.Duration) {
	if !installation.Unfinished || installation.Installed == nil {
		r.strandedSince.Delete(extension)
		return "", 0
	}
	now := r.Now()
	since, _ := r.strandedSince.LoadOrStore(extension, now)
	if since, ok := since.(time.Time); ok {
		return stranded(since, now)
	}
	return stranded(now, now)
}
