package drift

import (
	"context"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// join has an extension served by a shared watch, which begins with the first one.
func (w *Watches) join(key watchKey, owner object.Owner, objects []object.Key, since string) (fresh bool) {
	running, ok := w.shared[key]
	if !ok {
		running = newShared(since, newLastSeen(objects[0].GroupKind, &w.seen))
		w.shared[key] = running
		w.startShared(key, running)
	}
	told, fresh := running.join(owner, placesOf(objects), since)
	w.tell(told)
	return fresh
}

func (w *Watches) tell(told []event) {
	for _, seen := range told {
		w.handle(seen)
	}
}

// startShared runs a shared watch until it is stopped or denied.
func (w *Watches) startShared(key watchKey, running *shared) {
	ctx, cancel := newContext()
	running.stop = cancel
	locked := func(do func() []event) {
		w.mu.Lock()
		defer w.mu.Unlock()
		if ctx.Err() == nil {
			w.tell(do())
		}
	}
	stream := &stream{
		clients:  w.config.Clients,
		key:      key,
		kind:     running.seen.kind,
		selected: selection{labels: ofExtensions.String()},
		since:    running.since,
		handle: func(seen event) (counts bool) {
			locked(func() (told []event) {
				told, counts = running.note(seen)
				return told
			})
			return counts
		},
		synced: func(existing map[object.Key]struct{}) {
			locked(func() []event { return running.sync(existing) })
		},
		reached: func(version string) { locked(func() []event { return running.reach(version) }) },
	}
	go func() {
		if stream.run(ctx) {
			w.unshare(ctx, key, running)
		}
	}()
}

// unshare ends a shared watch that the controller may not have. The extensions that it
// serves are watched as their ServiceAccounts from then on.
func (w *Watches) unshare(ctx context.Context, key watchKey, running *shared) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	logger := log.FromContext(ctx)
	if running.version == "" {
		logger = logger.V(1) // as on every cluster where nobody has granted it
	}
	logger.Info("the controller may not watch a kind for all extensions, so that each is watched as its ServiceAccount", "resource", key.resource)
	w.end(key)
	w.denied[key] = struct{}{}
	var after time.Duration
	for own, needed := range running.asAccounts(key.resource) {
		var started *watch
		for extension, names := range needed.users {
			started, _ = w.use(own, running.seen.kind, extension, names)
		}
		w.start(own, started, needed.since, after) //nolint:contextcheck // it outlives the one that ends
		after += betweenStarts
	}
}

// betweenStarts spreads the watches that take the place of a shared one, of which there can be
// thousands: the API server would refuse some of so many at once. Nothing is missed meanwhile,
// since they begin where the shared one has ended.
const betweenStarts = 10 * time.Millisecond

// end stops a shared watch and forgets what it has seen.
func (w *Watches) end(key watchKey) {
	running := w.shared[key]
	running.stop()
	running.seen.forgetAll()
	delete(w.shared, key)
}
