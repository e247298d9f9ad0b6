package drift

import (
	"context"
	"maps"
	"math/rand/v2"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// join has an extension served by a shared watch, which begins with the first one.
func (w *Watches) join(key watchKey, owner object.Owner, objects []object.Key, since string) (fresh bool) {
	running, ok := w.shared[key]
	if !ok {
		running = newShared(since, newLastSeen(objects[0].GroupKind, w.seen))
		w.shared[key] = running
		w.startShared(key, running)
	}
	told, fresh := running.join(owner, placesOf(objects), since)
	w.tell(told)
	if _, waits := running.waiting[owner.Name]; waits {
		w.boundWait(key, running, owner.Name)
	}
	return fresh
}

// maxWait is how long an extension waits at least until a shared watch has come far enough. After
// that it reads its objects. It can be twice as long.
const maxWait = time.Minute

// boundWait has an extension told in time that it is not known how its objects are.
func (w *Watches) boundWait(key watchKey, running *shared, extension string) {
	user := running.users[extension]
	time.AfterFunc(maxWait+rand.N(maxWait), func() { //nolint:gosec // spreads load
		w.mu.Lock()
		defer w.mu.Unlock()
		if w.shared[key] == running {
			w.tell(running.overdue(extension, user))
		}
	})
}

func (w *Watches) tell(told []event) {
	for _, seen := range told {
		w.handle(seen)
	}
}

// startShared runs a shared watch until it is stopped or given up.
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
		now:      w.config.Now,
		began: func() {
			locked(func() []event {
				running.begin()
				return nil
			})
		},
		handle: func(seen event) (counts bool) {
			locked(func() (told []event) {
				told, counts = running.note(seen)
				return told
			})
			return counts
		},
		synced: func(existing map[object.Key]struct{}, _ string) {
			locked(func() []event { return running.sync(existing) })
		},
		reached: func(version string) { locked(func() []event { return running.reach(version) }) },
	}
	go func() {
		if cause := stream.run(ctx); cause != nil {
			w.unshare(ctx, key, running, cause)
		}
	}()
}

// unshare ends a shared watch that the controller may not have, or that does not work. The
// extensions that it serves are watched as their ServiceAccounts from then on, until they come
// again after it may be tried again.
func (w *Watches) unshare(ctx context.Context, key watchKey, running *shared, cause error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if ctx.Err() != nil {
		return
	}
	logger := log.FromContext(ctx)
	if running.version == "" && apierrors.IsForbidden(cause) {
		logger = logger.V(1) // as on every cluster where nobody has granted it
	}
	logger.Info("the controller cannot watch a kind for all extensions, so that each is watched as its ServiceAccount",
		"resource", key.resource, "reason", cause.Error())
	w.end(key)
	now := w.config.Now()
	maps.DeleteFunc(w.denied, func(_ watchKey, until time.Time) bool { return !now.Before(until) })
	w.denied[key] = now.Add(unsharedSpan + rand.N(unsharedSpan)) //nolint:gosec // spreads load
	for own, needed := range running.asAccounts(key.resource) {
		var started *watch
		for extension, names := range needed.users {
			started, _ = w.use(own, running.seen.kind, extension, names)
		}
		w.start(own, started, needed.since, w.untilNextStart(now)) //nolint:contextcheck // it outlives the one that ends
	}
}

// unsharedSpan is how long a shared watch that was given up is not tried again at least. It
// can be twice as long.
const unsharedSpan = time.Hour

// betweenStarts spreads the watches that take the place of shared ones, of which there can be
// thousands: the API server would refuse some of so many at once. Nothing is missed meanwhile,
// since they begin where the shared one has ended.
const betweenStarts = 10 * time.Millisecond

// untilNextStart is how long the next of these watches has to wait, of whatever kind.
func (w *Watches) untilNextStart(now time.Time) time.Duration {
	if w.nextStart.Before(now) {
		w.nextStart = now
	}
	wait := w.nextStart.Sub(now)
	w.nextStart = w.nextStart.Add(betweenStarts)
	return wait
}

// end stops a shared watch and forgets what it has seen.
func (w *Watches) end(key watchKey) {
	running := w.shared[key]
	running.stop()
	running.seen.forgetAll()
	delete(w.shared, key)
}
