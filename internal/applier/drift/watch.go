package drift

import (
	"context"
	"maps"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// watchKey is what one watch covers. Extensions with the same ServiceAccount
// share it.
type watchKey struct {
	account   types.NamespacedName
	resource  schema.GroupVersionResource
	namespace string // empty for cluster-scoped kinds
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

// Config is what [Watches] need. All fields are required.
type Config struct {
	// Clients are those of the ServiceAccounts that watch.
	Clients *impersonation.Clients

	// Find gives the state of an extension; nil for one that is not known.
	Find func(extension string) *State

	// Changed is called when an object of an extension has drifted, when a workload is
	// doing otherwise, or when a kind cannot be watched.
	Changed func(extension string)
}

// Since gives the resource version of a kind which the initial sync of a watch is no older
// than. It is empty for the newest one that there is.
type Since func(schema.GroupKind) string

// AtLeast is one version for all kinds.
func AtLeast(version string) Since { return func(schema.GroupKind) string { return version } }

// Watches are all that run in this process.
type Watches struct {
	config Config

	mu     sync.Mutex
	active map[watchKey]*watch
	closed bool
}

// NewWatches starts no watch.
func NewWatches(config Config) *Watches {
	return &Watches{config: config, active: map[watchKey]*watch{}}
}

// Watch starts the watches that the objects of an extension need, and stops those that
// only objects of earlier revisions needed. Watches that were denied before are started
// again. It does not wait for them. fresh says that all of them start now, and so with an
// initial sync, which is no older than since says for its kind.
func (w *Watches) Watch(owner object.Owner, items []object.Item, since Since) (fresh bool) {
	wanted := map[watchKey][]object.Key{}
	for _, item := range items {
		key := watchKey{account: owner.Account(), resource: item.Mapping.Resource, namespace: item.Key.Namespace}
		wanted[key] = append(wanted[key], item.Key)
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.closed {
		return false
	}
	w.release(owner.Name, func(key watchKey) bool {
		_, keep := wanted[key]
		return keep
	})
	fresh = true
	for key, objects := range wanted {
		running, ok := w.active[key]
		if !ok {
			running = &watch{kind: objects[0].GroupKind, users: map[string][]string{}}
			w.active[key] = running
		}
		names := namesOf(objects)
		running.users[owner.Name] = names
		if !ok || running.denied || !running.selected.covers(owner.Name, names) {
			w.start(key, running, since(running.kind))
		} else {
			fresh = false
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
		running.stop()
		delete(w.active, key)
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

// start runs a watch until it is stopped or denied. It replaces a running one that selects
// too little. The watch outlives the pass that starts it, so it has a context of its
// own.
func (w *Watches) start(key watchKey, running *watch, since string) {
	if running.stop != nil {
		running.stop()
	}
	ctx, cancel := context.WithCancel(log.IntoContext(context.Background(), log.Log.WithName("watches"))) //nolint:forbidigo // see above
	running.stop, running.denied = cancel, false
	selected := selectionOf(running.users)
	running.selected = selected
	stream := &stream{
		clients:  w.config.Clients,
		key:      key,
		kind:     running.kind,
		selected: selected,
		since:    since,
		handle: func(seen event) {
			if ctx.Err() == nil { // another stream may have told newer ones
				w.handle(seen)
			}
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
		if stream.run(ctx) {
			w.deny(ctx, running)
		}
	}()
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
		for _, object := range known.keys() {
			if _, exists := found[object]; !exists && covers(extension, object) {
				w.handle(event{owner: extension, key: object}.deleted())
			}
		}
	}
}
