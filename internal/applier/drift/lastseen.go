package drift

import (
	"unique"

	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Anybody can make objects with the labels of an extension, and any number of them. Of those
// that no extension has asked for, a limited number is remembered.
const (
	// maxSeen bounds the objects of all kinds.
	maxSeen = 100_000

	// maxSeenOfOwner bounds those of one kind that have the label of one owner, so that
	// nobody else pays for too many of them.
	maxSeenOfOwner = 1_000

	// maxLeftOut bounds the owners, of one kind, that are remembered to have objects that are
	// not. Who may make objects can have any number of labels.
	maxLeftOut = 1_000
)

// allSeen are the objects that all shared watches remember.
type allSeen struct {
	kinds map[*lastSeen]struct{}

	// count is how many of them nobody has asked for.
	count int

	// share bounds those of one kind and owner. It is less than maxSeenOfOwner after there
	// were too many of all, since nobody knows which names of owners are invented.
	share int
}

func newAllSeen() *allSeen { return &allSeen{kinds: map[*lastSeen]struct{}{}, share: maxSeenOfOwner} }

// makeRoom has the owners with the most objects forgotten until there is room for one more. It
// is false if all owners have one at most.
func (a *allSeen) makeRoom() bool {
	for a.count >= maxSeen && a.share > 1 {
		a.share /= 2
		for kind := range a.kinds {
			kind.forgetLargest(a.share)
		}
	}
	return a.count < maxSeen
}

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
	workload    *health.Workload // nil for what does not run anything
	unknown     bool             // it exists, and was too large to be read
	wanted      bool             // some extension has asked for it, so that it does not count
}

// lastSeen are the objects of one kind that exist, as a watch has last reported them.
type lastSeen struct {
	kind    schema.GroupKind
	objects map[place]seenObject

	// ofOwner counts those that nobody has asked for by owner.
	ofOwner map[unique.Handle[string]]int

	all *allSeen

	// leftOut is whose objects were not remembered since the last initial sync began; earlier
	// is that of before, and empty after its end.
	leftOut, earlier leftOut
}

// leftOut is whose objects are not all remembered.
type leftOut struct {
	owners map[string]struct{} // at most maxLeftOut
	any    bool                // any owner may have such
}

func newLeftOut() leftOut { return leftOut{owners: map[string]struct{}{}} }

func (l *leftOut) has(owner string) bool {
	_, has := l.owners[owner]
	return has || l.any
}

// add notes an owner. Without a label that was read it may be any.
func (l *leftOut) add(owner string) {
	if l.any {
		return
	}
	if l.owners[owner] = struct{}{}; owner == "" || len(l.owners) > maxLeftOut {
		l.addAll()
	}
}

func (l *leftOut) addAll() {
	l.any = true
	clear(l.owners)
}

func newLastSeen(kind schema.GroupKind, all *allSeen) *lastSeen {
	made := &lastSeen{
		kind: kind, objects: map[place]seenObject{}, ofOwner: map[unique.Handle[string]]int{}, all: all,
		leftOut: newLeftOut(), earlier: newLeftOut(),
	}
	all.kinds[made] = struct{}{}
	return made
}

// begin is called when an initial sync begins, which reports all objects anew.
func (l *lastSeen) begin() {
	for owner := range l.leftOut.owners {
		l.earlier.add(owner)
	}
	if l.leftOut.any {
		l.earlier.addAll()
	}
	l.leftOut = newLeftOut()
	if l.all.count < maxSeen/2 {
		l.all.share = maxSeenOfOwner
	}
}

// note remembers what was reported of an object, if there are not too many. One that is wanted
// is remembered however many there are.
func (l *lastSeen) note(at place, seen event, isWanted bool) (remembered bool) {
	before, known := l.objects[at]
	l.forget(at)
	if seen.fingerprint.Deleted {
		return false
	}
	remembered = l.remember(at, seenObject{
		owner: unique.Make(seen.owner), version: seen.version, fingerprint: seen.fingerprint, workload: seen.workload,
		unknown: seen.unknown, wanted: isWanted,
	})
	if known && !remembered {
		l.leftOut.add(before.owner.Value()) // whose it was before its label has changed
	}
	return remembered
}

func (l *lastSeen) remember(at place, seen seenObject) bool {
	if !seen.wanted {
		if !l.hasRoom(seen.owner) {
			return false
		}
		l.ofOwner[seen.owner]++
		l.all.count++
	}
	l.objects[at] = seen
	return true
}

// hasRoom is for one object of an owner that nobody has asked for.
func (l *lastSeen) hasRoom(owner unique.Handle[string]) bool {
	switch {
	case !l.all.makeRoom():
		l.leftOut.addAll()
		return false
	case l.ofOwner[owner] >= l.all.share:
		l.leftOut.add(owner.Value())
		return false
	default:
		return true
	}
}

// want is called when the first extension asks for an object, and when none does any more.
func (l *lastSeen) want(at place, isWanted bool) {
	seen, known := l.objects[at]
	if !known || seen.wanted == isWanted {
		return
	}
	l.forget(at)
	seen.wanted = isWanted
	l.remember(at, seen)
}

// forgetLargest forgets what nobody has asked for of owners that have more than so many.
func (l *lastSeen) forgetLargest(count int) {
	largest := map[unique.Handle[string]]struct{}{}
	for owner, has := range l.ofOwner {
		if has > count {
			largest[owner] = struct{}{}
			l.leftOut.add(owner.Value())
		}
	}
	if len(largest) == 0 {
		return
	}
	for at, seen := range l.objects {
		if _, isOf := largest[seen.owner]; isOf && !seen.wanted {
			l.forget(at)
		}
	}
}

// keep is called at the end of an initial sync, and forgets what is not among the objects that
// exist.
func (l *lastSeen) keep(existing map[object.Key]struct{}) {
	for at := range l.objects {
		if _, exists := existing[at.key(l.kind)]; !exists {
			l.forget(at)
		}
	}
	l.earlier = newLeftOut()
}

func (l *lastSeen) forget(at place) {
	gone, known := l.objects[at]
	if !known {
		return
	}
	delete(l.objects, at)
	if gone.wanted {
		return
	}
	l.all.count--
	if l.ofOwner[gone.owner]--; l.ofOwner[gone.owner] == 0 {
		delete(l.ofOwner, gone.owner)
	}
}

// forgetAll is for the end of the watch.
func (l *lastSeen) forgetAll() {
	l.keep(nil)
	delete(l.all.kinds, l)
}

// of is the event that reports how an object is to the extension that it is of. It is false
// if that is not known.
func (l *lastSeen) of(extension string, at place) (event, bool) {
	found := event{owner: extension, key: at.key(l.kind)}
	if seen, exists := l.objects[at]; exists {
		found.version, found.fingerprint, found.workload = seen.version, seen.fingerprint, seen.workload
		return found, !seen.unknown
	}
	return found.deleted(), !l.leftOut.has(extension) && !l.earlier.has(extension)
}
