package drift

import (
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
	namespace string // empty for cluster-scoped kinds

	// shared is set with the resource alone.
	shared bool
}

// inItsPlace is the key of the shared watch of the same kind.
func (k watchKey) inItsPlace() watchKey { return watchKey{resource: k.resource, shared: true} }

// user is who watches, for logs.
func (k watchKey) user() string {
	if k.shared {
		return "the controller itself"
	}
	return impersonation.User(k.account)
}

// watch is of one kind as one ServiceAccount: the metadata and, of Deployments, the
// status too.
type watch struct {
	kind     schema.GroupKind
	users    map[string][]string // the extensions that need it -> names of their objects
	denied   bool
	stop     context.CancelFunc
	selected selection
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

	// mu also makes what a shared watch sees of an object and what an extension is told of
	// it one step: otherwise one that joins could be told what was so before, last.
	mu     sync.Mutex
	active map[watchKey]*watch
	shared map[watchKey]*shared
	closed bool

	// denied are the shared watches that were given up, and until when they are not tried
	// again: mostly the controller may not have them.
	denied map[watchKey]time.Time

	// nextStart is when a watch that takes the place of a shared one may begin at the earliest.
	nextStart time.Time

	// seen are the objects that all shared watches remember.
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
// out of what they have seen if they are shared.
func (w *Watches) Watch(owner object.Owner, items []object.Item, since Since) (fresh bool) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	wanted := map[watchKey][]object.Key{}
	for _, item := range items {
		key := w.keyOf(owner, item)
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
		}
		fresh = fresh && !covered
	}
	return fresh
}

// keyOf says which watch an object of an extension needs.
func (w *Watches) keyOf(owner object.Owner, item object.Item) watchKey {
	key := watchKey{account: owner.Account(), resource: item.Mapping.Resource, namespace: item.Key.Namespace}
	if w.config.Now().Before(w.denied[key.inItsPlace()]) || !mayBeShared(item) || impersonation.User(key.account) == "" {
		return key
	}
	return key.inItsPlace()
}

// mayBeShared is false for what is never watched as the controller. It is not to ask for the
// Secrets of others, not even in vain. Of Deployments the status is told to whoever reads that of
// the extension, which only the ServiceAccount may look up.
func mayBeShared(item object.Item) bool {
	return item.Mapping.Resource.GroupResource() != corev1.Resource("secrets") && item.Key.GroupKind != health.DeploymentKind
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

// Close stops all watches, and starts no others.
func (w *Watches) Close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.closed = true
	for key, running := range w.active {
		running.stop()
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
		running.stop()
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

// start runs a watch until it is stopped or denied, after a while if it is not the first of
// many. It replaces a running one that selects too little.
func (w *Watches) start(key watchKey, running *watch, since string, after time.Duration) {
	if running.stop != nil {
		running.stop()
	}
	ctx, cancel := newContext()
	running.stop, running.denied = cancel, false
	selected := selectionOf(running.users)
	running.selected = selected
	stream := &stream{
		clients:  w.config.Clients,
		key:      key,
		kind:     running.kind,
		selected: selected,
		since:    since,
		now:      w.config.Now,
		handle: func(seen event) bool {
			if ctx.Err() == nil { // another stream may have told newer ones
				w.tell(w.addressed(running, seen))
			}
			return true
		},
		synced: func(found map[object.Key]struct{}) {
			if ctx.Err() != nil {
				return
			}
			w.findDeleted(running, found, func(extension string, one object.Key) bool {
				return one.GroupKind == running.kind && one.Namespace == key.namespace && selected.covers(extension, []string{one.Name})
			})
		},
	}
	go func() {
		pause(ctx, after)
		if stream.run(ctx) != nil {
			w.deny(ctx, running)
		}
	}()
}

// addressed are the events that report an event to the extensions that it is of. One without
// a label that was read is reported to all that have an object of this name.
func (w *Watches) addressed(running *watch, seen event) (told []event) {
	if seen.owner != "" {
		return []event{seen}
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	for extension, names := range running.users {
		if slices.Contains(names, seen.key.Name) {
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
	running.stop()
	running.denied = true
	users := slices.Collect(maps.Keys(running.users))
	w.mu.Unlock()
	for _, extension := range users {
		if found := w.config.Find(extension); found == nil || !found.failInitialSync() {
			w.config.Changed(extension)
		}
	}
}

// handle notes an event, and wakes the extension if an object has drifted or a workload is
// doing otherwise.
func (w *Watches) handle(seen event) {
	known := w.config.Find(seen.owner)
	if known == nil {
		return
	}
	if seen.unknown {
		if known.LookAtAll(); !known.failInitialSync() {
			w.config.Changed(seen.owner)
		}
		return
	}
	// The workload is noted first: the initial sync may end with the object.
	workloadChanged := seen.workload != nil && known.noteWorkload(*seen.workload, seen.fingerprint)
	if known.noteObject(seen.key, seen.fingerprint, seen.version) || workloadChanged {
		w.config.Changed(seen.owner)
	}
}

// findDeleted finds objects that were deleted while there was no watch: those that it
// covers and has not found.
func (w *Watches) findDeleted(running *watch, found map[object.Key]struct{}, covers func(extension string, one object.Key) bool) {
	w.mu.Lock()
	users := slices.Collect(maps.Keys(running.users))
	w.mu.Unlock()
	for _, extension := range users {
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
