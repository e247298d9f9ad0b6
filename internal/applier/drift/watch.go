package drift

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"sync"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// watchKey is what one watch covers. Extensions with the same ServiceAccount use the same
// one. A shared watch covers a kind in all namespaces, as the controller, for all extensions.
type watchKey struct {
	account   types.NamespacedName
	resource  schema.GroupVersionResource
	kind      string // a resource may be defined anew with another one
	namespace string // empty for cluster-scoped kinds

	// shared is set with the resource and the kind alone.
	shared bool
}

// inItsPlace is the key of the shared watch of the same kind.
func (k watchKey) inItsPlace() watchKey {
	return watchKey{resource: k.resource, kind: k.kind, shared: true}
}

// user is who watches, for logs.
func (k watchKey) user() string {
	if k.shared {
		return "the controller itself"
	}
	return impersonation.User(k.account)
}

// watch is of one kind as one ServiceAccount: the metadata and, of what has a status, the
// status too.
type watch struct {
	kind     schema.GroupKind
	users    map[string][]string // the extensions that need it -> names of their objects
	denied   bool
	stop     context.CancelFunc
	selected selection

	// since is the resource version that an initial sync is no older than: the newest that
	// anybody has asked for, or that was told to all users.
	since string

	// version is the one up to which all was told; empty until the end of the initial sync.
	version string

	// seen is what is told to extensions that come later; nil unless the watch gets the objects
	// of all.
	seen *lastSeen
}

// Config is what [Watches] need. All fields are required. The functions are called while
// watches are locked: they must neither block nor call [Watches].
type Config struct {
	// Clients are those of the ServiceAccounts that watch, and of the controller for what it
	// may watch itself.
	Clients *impersonation.Clients

	// Find gives the state of an extension; nil for one that is not known.
	Find func(extension string) *State

	// Changed is called when an object of an extension has drifted, when a workload is
	// doing otherwise, or when a kind cannot be watched.
	Changed func(extension string)

	// Now is the clock. It must not call [Watches] either.
	Now func() time.Time
}

// Since gives the resource version of a kind which the initial sync of a watch is no older
// than. It is empty for the newest one that there is.
type Since func(schema.GroupKind) string

// AtLeast is one version for all kinds.
func AtLeast(version string) Since { return func(schema.GroupKind) string { return version } }

// Watches are all that run in this process. A kind is watched as the controller, with one
// watch for all extensions, where the controller may do that; it finds out by trying, each
// kind at most once in an hour. Otherwise it is watched as the ServiceAccount of each extension.
type Watches struct {
	config Config

	// mu also makes what a watch sees of an object and what an extension is told of it one
	// step: otherwise one that joins could be told what was so before, last.
	mu     sync.Mutex
	active map[watchKey]*watch
	shared map[watchKey]*shared
	closed bool

	// denied are the shared watches that were given up, and until when they are not tried
	// again: mostly the controller may not have them.
	denied map[watchKey]time.Time

	// nextStart is when a watch that takes the place of a shared one may begin at the earliest.
	nextStart time.Time

	// seen are the objects that all watches remember.
	seen *allSeen
}

// NewWatches starts no watch.
func NewWatches(config Config) *Watches {
	return &Watches{config: config, active: map[watchKey]*watch{}, shared: map[watchKey]*shared{}, denied: map[watchKey]time.Time{}, seen: newAllSeen()}
}

// Watch starts the watches that the objects of an extension need, and stops those that
// only objects of earlier revisions needed. Watches that were denied before are started
// again. It does not wait for them. fresh says that they report all of the objects from now
// on, no older than since says for their kind: with their initial sync if they start, and
// out of what they have seen if they get the objects of all extensions.
func (w *Watches) Watch(owner object.Owner, items []object.Item, since Since) (fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	now, wanted := w.config.Now(), map[watchKey][]object.Key{}
	for _, item := range items {
		key := w.keyOf(owner, item, now)
		wanted[key] = append(wanted[key], item.Key)
	}
	w.release(owner.Name, func(key watchKey) bool {
		_, keep := wanted[key]
		return keep
	})
	fresh = true
	for key, objects := range wanted {
		from := since(objects[0].GroupKind)
		if key.shared {
			fresh = w.join(key, owner, objects, from) && fresh
			continue
		}
		running, covered := w.use(key, objects[0].GroupKind, owner.Name, namesOf(objects))
		if !covered {
			w.start(key, running, from, 0)
		} else if !w.replay(running, owner.Name, objects, from) {
			fresh = false
		}
	}
	return fresh
}

// keyOf says which watch an object of an extension needs.
func (w *Watches) keyOf(owner object.Owner, item object.Item, now time.Time) watchKey {
	key := watchKey{account: owner.Account(), resource: item.Mapping.Resource, kind: item.Key.Kind, namespace: item.Key.Namespace}
	if now.Before(w.denied[key.inItsPlace()]) || !mayBeShared(item) || impersonation.User(key.account) == "" {
		return key
	}
	return key.inItsPlace()
}

// mayBeShared returns false for kinds that only the ServiceAccount watches, never the controller itself: Secrets, and
// kinds whose status counts. The status of the extension shows that status to its readers, so the ServiceAccount
// needs the permission to read it. If only conditions count, the watch is shared and reports the metadata: the
// controller reads the conditions as the ServiceAccount after an event.
func mayBeShared(item object.Item) bool {
	kind := item.Key.GroupKind
	return item.Mapping.Resource.GroupResource() != corev1.Resource("secrets") && (!health.HasStatus(kind) || health.HasConditions(kind))
}

// use adds an extension to a watch, which may not have begun yet. covered says that it gets
// the objects of these names already.
func (w *Watches) use(key watchKey, kind schema.GroupKind, extension string, names []string) (running *watch, covered bool) {
	running, ok := w.active[key]
	if !ok {
		running = &watch{kind: kind, users: map[string][]string{}}
		w.active[key] = running
	}
	running.users[extension] = names
	return running, ok && !running.denied && running.selected.covers(extension, names)
}

// replay tells an extension what a watch that gets the objects of all has seen of its own.
// fresh says that it was told of all of them, or is by the rest of the initial sync. If the
// watch has not come as far as since, what it has seen may be older than what the extension
// knows.
func (w *Watches) replay(running *watch, extension string, objects []object.Key, since string) (fresh bool) {
	if running.seen == nil || !running.hasReached(since) {
		return false
	}
	fresh = true
	for _, at := range placesOf(objects) {
		seen, known := running.seen.of(extension, at)
		switch {
		case !known:
			fresh = false
		case seen.fingerprint.Deleted && running.version == "": // it may be yet to come
		default:
			w.handle(seen)
		}
	}
	return fresh
}

// Close stops all watches, and starts no others.
func (w *Watches) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for key, running := range w.active {
		running.end()
		delete(w.active, key)
	}
	for key := range w.shared {
		w.end(key)
	}
}

// Unwatch stops the watches that no other extension uses.
func (w *Watches) Unwatch(extension string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.release(extension, func(watchKey) bool { return false })
}

func (w *Watches) release(extension string, keep func(watchKey) bool) {
	maps.DeleteFunc(w.active, func(key watchKey, running *watch) bool {
		if keep(key) {
			return false
		}
		delete(running.users, extension)
		if len(running.users) > 0 {
			return false
		}
		running.end()
		return true
	})
	for key, running := range w.shared {
		if keep(key) {
			continue
		}
		if running.leave(extension); len(running.users) == 0 {
			w.end(key)
		}
	}
}

// Denied names the kinds of an extension that its ServiceAccount may not watch,
// sorted.
func (w *Watches) Denied(extension string) []string {
	w.mu.Lock()
	defer w.mu.Unlock()
	kinds := map[string]struct{}{}
	for _, running := range w.active {
		if _, used := running.users[extension]; used && running.denied {
			kinds[running.kind.String()] = struct{}{}
		}
	}
	return slices.Sorted(maps.Keys(kinds))
}

// Unconfirmed says that the objects of an extension are watched, and all of them by shared
// watches: nothing tells then that its ServiceAccount has lost its rights.
func (w *Watches) Unconfirmed(extension string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, running := range w.active {
		if _, used := running.users[extension]; used {
			return false
		}
	}
	for _, running := range w.shared {
		if _, used := running.users[extension]; used {
			return true
		}
	}
	return false
}

// hasReached says that what the watch tells is no older than since. Until the end of its
// initial sync that is what it was asked for.
func (r *watch) hasReached(since string) bool {
	told := cmp.Or(r.version, r.since)
	return told == "" || !isNewer(since, told)
}

// end stops a watch and forgets what it has seen.
func (r *watch) end() {
	if r.stop != nil {
		r.stop()
	}
	if r.seen != nil {
		r.seen.forgetAll()
	}
}

// begin prepares a watch to run, in the place of one that selects too little if there is one.
// Its initial sync is then no older than what users of that one were told: an API server that
// lags behind would report their objects as they were before.
func (w *Watches) begin(running *watch, since string) context.Context {
	isFirst := running.stop == nil
	running.end()
	ctx, cancel := newContext()
	running.stop, running.denied, running.version, running.seen = cancel, false, "", nil
	if isFirst {
		running.since = since
	} else {
		running.since = newest(running.since, since)
	}
	running.selected = selectionOf(running.users)
	if running.selected.extensions == nil {
		running.seen = newLastSeen(running.kind, w.seen)
	}
	return ctx
}

// newest is the newer of two resource versions. If they cannot be compared it is empty, for
// the newest one that there is.
func newest(one, other string) string {
	switch {
	case one == "", other == "":
		return ""
	case one == other, isNewer(one, other):
		return one
	case isNewer(other, one):
		return other
	default:
		return ""
	}
}

// start runs a watch until it is stopped or denied, after a while if it is not the first of
// many. It replaces a running one that selects too little. Whether it still runs and what it
// tells are one step: otherwise its last event could be told after newer ones of the watch in
// its place.
func (w *Watches) start(key watchKey, running *watch, since string, after time.Duration) {
	ctx := w.begin(running, since)
	locked := func(do func()) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if ctx.Err() == nil {
			do()
		}
	}
	stream := &stream{
		clients:  w.config.Clients,
		key:      key,
		kind:     running.kind,
		selected: running.selected,
		since:    running.since,
		now:      w.config.Now,
		began: func() {
			locked(func() {
				if running.seen != nil {
					running.seen.begin()
				}
			})
		},
		handle: func(seen event) bool {
			locked(func() {
				if running.seen != nil {
					running.seen.note(placeOf(seen.key), seen, false)
				}
				w.tell(running.addressed(seen))
			})
			return true
		},
		synced: func(found map[object.Key]struct{}, version string) {
			locked(func() { w.sync(key, running, found, version) })
		},
		reached: func(version string) {
			locked(func() { running.version, running.since = version, version })
		},
	}
	go func() {
		pause(ctx, after)
		if stream.run(ctx) != nil {
			w.deny(ctx, running)
		}
	}()
}

// addressed are the events that report an event to the extensions that it is of: the one that its
// label names, and all that have an object of this name. Anybody can change the label, and of a
// large event it is not read.
func (r *watch) addressed(seen event) (told []event) {
	labelled := seen.owner
	if labelled != "" {
		told = append(told, seen)
	}
	for extension, names := range r.users {
		if extension != labelled && slices.Contains(names, seen.key.Name) {
			seen.owner = extension
			told = append(told, seen)
		}
	}
	return told
}

// newContext is for a watch, which outlives the pass that starts it.
func newContext() (context.Context, context.CancelFunc) {
	return context.WithCancel(log.IntoContext(context.Background(), log.Log.WithName("watches"))) //nolint:forbidigo // see above
}

// deny stops a watch that the ServiceAccount may not have. The extensions that need it get
// a pass, which finds that it has to read their objects at intervals.
func (w *Watches) deny(ctx context.Context, running *watch) {
	w.mu.Lock()
	if ctx.Err() != nil {
		w.mu.Unlock()
		return
	}
	running.end()
	running.denied, running.seen = true, nil
	users := slices.Collect(maps.Keys(running.users))
	w.mu.Unlock()
	for _, extension := range users {
		if found := w.config.Find(extension); found == nil || !found.failInitialSync() {
			w.config.Changed(extension)
		}
	}
}

// sync is called at the end of an initial sync, with all that exists. That it is over is noted in
// the same step: who came in between would wait for it to say what was deleted.
func (w *Watches) sync(key watchKey, running *watch, found map[object.Key]struct{}, version string) {
	running.version = version
	if running.seen != nil {
		running.seen.keep(found)
	}
	w.findDeleted(running, found, func(extension string, one object.Key) bool {
		return one.GroupKind == running.kind && one.Namespace == key.namespace && running.selected.covers(extension, []string{one.Name})
	})
}

// handle notes an event, and wakes the extension if an object has drifted or a workload is
// doing otherwise.
func (w *Watches) handle(seen event) {
	known := w.config.Find(seen.owner)
	if known == nil {
		return
	}
	if seen.unknown && seen.key.Name == "" {
		if known.noteUnknown(); !known.failInitialSync() {
			w.config.Changed(seen.owner)
		}
		return
	}
	// The workload is noted first: the initial sync may end with the object.
	workloadChanged := seen.workload != nil && known.noteWorkload(*seen.workload, seen.fingerprint)
	now := Known{Fingerprint: seen.fingerprint, Version: seen.version, StatusUnread: seen.isStatusUnread()}
	if known.noteObject(seen.key, now) || workloadChanged {
		w.config.Changed(seen.owner)
	}
}

// findDeleted finds objects that were deleted while there was no watch: those that it
// covers and has not found.
func (w *Watches) findDeleted(running *watch, found map[object.Key]struct{}, covers func(extension string, one object.Key) bool) {
	for extension := range running.users {
		known := w.config.Find(extension)
		if known == nil {
			continue
		}
		for _, one := range known.keys() {
			if _, exists := found[one]; !exists && covers(extension, one) {
				w.handle(event{owner: extension, key: one}.deleted())
			}
		}
	}
}
