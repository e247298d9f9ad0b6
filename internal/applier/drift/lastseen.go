package drift

import (
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

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

// place is where an object of the kind of a watch is. There can be a hundred thousand in
// memory, in few namespaces.
type place struct {
	namespace unique.Handle[string]
	name      string
}

func placeOf(key object.Key) place {
	return place{namespace: unique.Make(key.Namespace), name: key.Name}
}

func placesOf(keys []object.Key) []place {
	places := make([]place, len(keys))
	for i, key := range keys {
		places[i] = placeOf(key)
	}
	return places
}

func (p place) key(kind schema.GroupKind) object.Key {
	return object.Key{GroupKind: kind, Namespace: p.namespace.Value(), Name: p.name}
}

// seenObject is an object as a watch has last reported it.
type seenObject struct {
	owner       unique.Handle[string] // as its label says
	version     string
	fingerprint object.Fingerprint
	unknown     bool // it exists, and was too large to be read
}

// lastSeen are the objects of one kind that exist, as a watch has last reported them.
type lastSeen struct {
	kind    schema.GroupKind
	objects map[place]seenObject

	// ofOwner counts them by owner.
	ofOwner map[unique.Handle[string]]int

	// ofAll counts those of all kinds.
	ofAll *int

	// leftOut are the owners with objects that are not remembered; allLeftOut says that any
	// owner may have such.
	leftOut    map[string]struct{}
	allLeftOut bool
}

func newLastSeen(kind schema.GroupKind, ofAll *int) *lastSeen {
	return &lastSeen{kind: kind, objects: map[place]seenObject{}, ofOwner: map[unique.Handle[string]]int{}, ofAll: ofAll, leftOut: map[string]struct{}{}}
}

// note remembers what was reported of an object, if there are not too many. One that is wanted
// is remembered however many there are.
func (l *lastSeen) note(at place, seen event, isWanted bool) (remembered bool) {
	owner := unique.Make(seen.owner)
	_, known := l.objects[at]
	switch {
	case seen.fingerprint.Deleted:
		l.forget(at)
		return false
	case known:
		l.forget(at) // the owner may be another one
	case isWanted:
	case *l.ofAll >= maxSeen:
		l.allLeftOut = true
		return false
	case l.ofOwner[owner] >= maxSeenOfOwner:
		l.leaveOut(seen.owner)
		return false
	}
	l.objects[at] = seenObject{owner: owner, version: seen.version, fingerprint: seen.fingerprint, unknown: seen.unknown}
	l.ofOwner[owner]++
	*l.ofAll++
	return true
}

// leaveOut notes that an owner has an object that is not remembered. Without a label that was
// read it may be any.
func (l *lastSeen) leaveOut(owner string) {
	if owner == "" {
		l.allLeftOut = true
		return
	}
	l.leftOut[owner] = struct{}{}
}

// keep forgets what is not among the objects that exist.
func (l *lastSeen) keep(existing map[object.Key]struct{}) {
	for at := range l.objects {
		if _, exists := existing[at.key(l.kind)]; !exists {
			l.forget(at)
		}
	}
}

func (l *lastSeen) forget(at place) {
	gone, known := l.objects[at]
	if !known {
		return
	}
	delete(l.objects, at)
	*l.ofAll--
	if l.ofOwner[gone.owner]--; l.ofOwner[gone.owner] == 0 {
		delete(l.ofOwner, gone.owner)
	}
}

// forgetAll is for the end of the watch.
func (l *lastSeen) forgetAll() { l.keep(nil) }

// of is the event that reports how an object is to the extension that it is of. It is false
// if that is not known.
func (l *lastSeen) of(extension string, at place) (event, bool) {
	found := event{owner: extension, key: at.key(l.kind)}
	if seen, exists := l.objects[at]; exists {
		found.version, found.fingerprint = seen.version, seen.fingerprint
		return found, !seen.unknown
	}
	_, leftOut := l.leftOut[extension]
	return found.deleted(), !leftOut && !l.allLeftOut
}
