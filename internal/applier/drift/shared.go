package drift

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// shared is a watch of the metadata of one kind in all namespaces, as the controller, with the
// extensions that it serves. They come to it one after the other, mostly after its initial sync: each is
// told what the watch has seen of its objects, as if it had begun with that extension.
//
// It has no lock and tells nobody anything. Its methods return what is to be told, in that
// order, before the next one is called.
type shared struct {
	stop context.CancelFunc

	// since is the resource version that the initial sync is no older than; version is the
	// one up to which all was seen, and empty until the end of the initial sync.
	since, version string

	users map[string]*sharedUser // by extension

	// wanted says which extensions have an object in their releases. There can be several: one
	// may have lost it to another, and each has to find that out. What the label of the object
	// says may be yet another one: anybody can change that, and it is drift.
	wanted map[place][]string

	// waiting are extensions that are told of their objects when the watch has come far
	// enough.
	waiting map[string]struct{}

	seen *lastSeen
}

// sharedUser is an extension that a shared watch serves.
type sharedUser struct {
	uid     types.UID
	account types.NamespacedName
	objects []place

	// since is the resource version that what it is told is no older than.
	since string

	// untold says that there are objects of which it was told nothing yet.
	untold bool
}

func newShared(since string, seen *lastSeen) *shared {
	return &shared{
		since:   since,
		users:   map[string]*sharedUser{},
		wanted:  map[place][]string{},
		waiting: map[string]struct{}{},
		seen:    seen,
	}
}

// join has the watch serve an extension with these objects, and no others. fresh says that
// it is told of all of them, now or when the watch has come as far as since.
func (s *shared) join(owner object.Owner, objects []place, since string) (told []event, fresh bool) {
	before := s.users[owner.Name]
	untold := before == nil || before.uid != owner.UID || before.untold ||
		slices.ContainsFunc(objects, func(at place) bool { return !slices.Contains(s.wanted[at], owner.Name) })
	s.remove(owner.Name)
	s.users[owner.Name] = &sharedUser{uid: owner.UID, account: owner.Account(), objects: objects, since: since, untold: untold}
	for _, at := range objects {
		s.wanted[at] = append(s.wanted[at], owner.Name)
		s.seen.want(at, true)
	}
	if before != nil {
		s.unwant(before.objects)
	}
	if !s.hasReached(since) {
		s.waiting[owner.Name] = struct{}{}
		return nil, true
	}
	return s.replay(owner.Name)
}

// leave has the watch not serve an extension any more.
func (s *shared) leave(extension string) {
	if user := s.users[extension]; user != nil {
		s.remove(extension)
		s.unwant(user.objects)
	}
}

func (s *shared) remove(extension string) {
	user := s.users[extension]
	if user == nil {
		return
	}
	for _, at := range user.objects {
		s.wanted[at] = slices.DeleteFunc(s.wanted[at], func(one string) bool { return one == extension })
		if len(s.wanted[at]) == 0 {
			delete(s.wanted, at)
		}
	}
	delete(s.users, extension)
	delete(s.waiting, extension)
}

// unwant notes of objects that one extension does not ask for any more that none does.
func (s *shared) unwant(objects []place) {
	for _, at := range objects {
		if len(s.wanted[at]) == 0 {
			s.seen.want(at, false)
		}
	}
}

// note is called with each event. It reports whether the object is remembered: anybody can make
// any number of others.
func (s *shared) note(seen event) (told []event, remembered bool) {
	at := placeOf(seen.key)
	extensions := s.wanted[at]
	remembered = s.seen.note(at, seen, len(extensions) > 0)
	for _, extension := range extensions {
		seen.owner = extension
		told = append(told, seen)
	}
	return told, remembered
}

// begin is called when an initial sync begins.
func (s *shared) begin() { s.seen.begin() }

// sync is called at the end of each initial sync with all objects that exist and are
// remembered. At the end of the first one everybody waits, and may have written objects since
// that are not among them. Of one that has come during another one it may not be known.
func (s *shared) sync(existing map[object.Key]struct{}) (told []event) {
	s.seen.keep(existing)
	if s.version == "" {
		return nil
	}
	for at, extensions := range s.wanted {
		if _, exists := existing[at.key(s.seen.kind)]; exists {
			continue
		}
		for _, extension := range extensions {
			gone, known := s.seen.of(extension, at)
			if !known {
				gone = event{owner: extension, unknown: true}
			}
			told = append(told, gone)
		}
	}
	return told
}

// reach is called with each resource version up to which all was seen.
func (s *shared) reach(version string) (told []event) {
	s.version = version
	for extension := range s.waiting {
		if s.hasReached(s.users[extension].since) {
			replayed, _ := s.replay(extension)
			told = append(told, replayed...)
		}
	}
	return told
}

// overdue is called when an extension has waited for too long since it came as this user. It
// goes on to wait: what it reads meanwhile may change before the watch comes that far.
func (s *shared) overdue(extension string, user *sharedUser) (told []event) {
	if _, waits := s.waiting[extension]; !waits || s.users[extension] != user {
		return nil
	}
	return []event{{owner: extension, unknown: true}}
}

// hasReached is true for versions that cannot be compared, or are empty: what is told is then
// as new as there is, and anything newer follows.
func (s *shared) hasReached(since string) bool {
	return s.version != "" && (since == s.since || !isNewer(since, s.version))
}

// replay tells an extension how its objects are. If that is not known of some, it is not
// fresh, and the extension is told so the first time.
func (s *shared) replay(extension string) (told []event, fresh bool) {
	user := s.users[extension]
	fresh = true
	for _, at := range user.objects {
		if seen, known := s.seen.of(extension, at); known {
			told = append(told, seen)
		} else {
			fresh = false
		}
	}
	if !fresh && user.untold {
		told = append(told, event{owner: extension, unknown: true})
	}
	user.untold = false
	delete(s.waiting, extension)
	return told, fresh
}

// asAccounts is what watches as ServiceAccounts have to get that serve the same extensions:
// for each, extension -> objects, and the resource version that it begins with.
func (s *shared) asAccounts(resource schema.GroupVersionResource) map[watchKey]*accountWatch {
	found := map[watchKey]*accountWatch{}
	for extension, user := range s.users {
		since := s.version
		if _, waits := s.waiting[extension]; waits {
			since = user.since
		}
		for _, one := range user.objects {
			key := watchKey{account: user.account, resource: resource, kind: s.seen.kind.Kind, namespace: one.namespace.Value()}
			if found[key] == nil {
				found[key] = &accountWatch{since: since, users: map[string][]string{}}
			}
			found[key].add(extension, one.name, since)
		}
	}
	return found
}

// accountWatch is what a watch takes that begins in the place of a shared one.
type accountWatch struct {
	since string
	users map[string][]string // extension -> names of its objects
}

// add has the watch get one object more, and be no older than since.
func (a *accountWatch) add(extension, name, since string) {
	a.users[extension] = append(a.users[extension], name)
	if since == "" || a.since != "" && isNewer(since, a.since) {
		a.since = since
	}
}
