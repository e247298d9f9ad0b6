package controller

import (
	"time"

	"k8s.io/apimachinery/pkg/api/meta"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
)

// unfinishedWait is how long content stays between two revisions without a try
// that writes to it.
const unfinishedWait = time.Minute

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

// remainsOf decides about content after an unfinished revision, in a pass that could write
// nothing more of that revision, for whatever reason. since is when that was first so.
//
// At first the content stays as it is. What is in the way is often gone soon: a process
// that has just started has not read its catalogs yet, or a registry restarts. A repair
// would undo what the next pass does again.
//
// After some time the installed revision is repaired. Nobody has tested a mixture of two
// revisions, and nothing would repair it. The way back is always open, because the record
// has all of the installed revision. Objects that only the unfinished revision has stay in
// its record, and are deleted by the next revision that succeeds.
func remainsOf(since, now time.Time) (_ Remains, remaining time.Duration) {
	if remaining := since.Add(unfinishedWait).Sub(now); remaining > 0 {
		return RemainsStay, remaining
	}
	return RemainsTakenBack, 0
}

// remains notes that this pass takes nothing further of what was begun, if
// anything was.
func (r *Reconciler) remains(extension string, installation installation.State) (Remains, time.Duration) {
	if !installation.Unfinished || installation.Installed == nil {
		r.unfinishedSince.Delete(extension)
		return "", 0
	}
	now := r.Now()
	since, _ := r.unfinishedSince.LoadOrStore(extension, now)
	if since, ok := since.(time.Time); ok {
		return remainsOf(since, now)
	}
	return remainsOf(now, now)
}

// isTakenBack says that what was begun is not there any more, or is about to go, as far as this
// process has seen it.
func (r *Reconciler) isTakenBack(extension string) bool {
	since, known := r.unfinishedSince.Load(extension)
	began, isTime := since.(time.Time)
	if !known || !isTime {
		return false
	}
	remains, _ := remainsOf(began, r.Now())
	return remains == RemainsTakenBack
}

// recallTakenBack is for a process that has started since content was taken back, of which no
// record tells. The status does where the operator has held the next try: that is told after what
// is installed was repaired.
func (r *Reconciler) recallTakenBack(ext *ocv1.ClusterExtension) {
	ready := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeReady)
	if ready != nil && ready.Reason == ocv1.ReasonUpgradeHeld {
		r.unfinishedSince.LoadOrStore(ext.Name, time.Time{})
	}
}
