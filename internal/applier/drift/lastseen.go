package drift

import (
	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Anybody can make objects with the labels of an extension, and any number of them. Of those
// that no extension has asked for, a limited number is remembered.
const (
	// maxSeen bounds the objects of all kinds.
	maxSeen = 100_000

	// maxSeenOfOwner bounds those of one kind that have the label of one owner, so that who
	// makes too many of them is the only one who pays for it.
	maxSeenOfOwner = 1_000
)

// seenObject is an object as a watch has last reported it.
type seenObject struct {
	owner       string // as its label says
	fingerprint object.Fingerprint
	workload    *health.Workload // nil for what does not run anything
}

// lastSeen are the objects of one kind that exist, as a watch has last reported them.
type lastSeen struct {
	objects map[object.Key]seenObject

	// ofOwner counts them by owner.
	ofOwner map[string]int

	// ofAll counts those of all kinds.
	ofAll *int

	// leftOut are the owners with objects that are not remembered; allLeftOut says that any
	// owner may have such.
	leftOut    map[string]struct{}
	allLeftOut bool
}

func newLastSeen(ofAll *int) *lastSeen {
	return &lastSeen{objects: map[object.Key]seenObject{}, ofOwner: map[string]int{}, ofAll: ofAll, leftOut: map[string]struct{}{}}
}

// note remembers what was reported of an object. One that is wanted is remembered however
// many there are.
func (l *lastSeen) note(seen event, isWanted bool) {
	_, known := l.objects[seen.key]
	switch {
	case seen.fingerprint.Deleted:
		l.forget(seen.key)
		return
	case known:
		l.forget(seen.key) // the owner may be another one
	case isWanted:
	case *l.ofAll >= maxSeen:
		l.allLeftOut = true
		return
	case l.ofOwner[seen.owner] >= maxSeenOfOwner:
		l.leftOut[seen.owner] = struct{}{}
		return
	}
	l.objects[seen.key] = seenObject{owner: seen.owner, fingerprint: seen.fingerprint, workload: seen.workload}
	l.ofOwner[seen.owner]++
	*l.ofAll++
}

// keep forgets what is not among the objects that exist.
func (l *lastSeen) keep(existing map[object.Key]struct{}) {
	for key := range l.objects {
		if _, exists := existing[key]; !exists {
			l.forget(key)
		}
	}
}

func (l *lastSeen) forget(key object.Key) {
	gone, known := l.objects[key]
	if !known {
		return
	}
	delete(l.objects, key)
	*l.ofAll--
	if l.ofOwner[gone.owner]--; l.ofOwner[gone.owner] == 0 {
		delete(l.ofOwner, gone.owner)
	}
}

// forgetAll is for the end of the watch.
func (l *lastSeen) forgetAll() { l.keep(nil) }

// of is the event that reports how an object is to the extension that it is of. It is false
// if that is not known.
func (l *lastSeen) of(extension string, key object.Key) (event, bool) {
	if seen, exists := l.objects[key]; exists {
		return event{owner: extension, key: key, fingerprint: seen.fingerprint, workload: seen.workload}, true
	}
	_, leftOut := l.leftOut[extension]
	return event{owner: extension, key: key}.deleted(), !leftOut && !l.allLeftOut
}
