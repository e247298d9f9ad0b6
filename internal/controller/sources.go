package controller

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Sources are what wakes extensions besides objects of the API.
type Sources struct {
	Wakeups *Wakeups

	// APIs signals that the cluster serves other APIs than before.
	APIs Signal

	// Rights signals that somebody has more or fewer rights than before.
	Rights Signal
}

// NewSources makes sources that nobody has written to.
func NewSources() Sources {
	// A second signal before the first was received would say no more.
	return Sources{Wakeups: &Wakeups{}, APIs: make(Signal, 1), Rights: make(Signal, 1)}
}

// Wakeups are extensions to look at, from those who notice that something has changed.
// It is a source of the controller. The zero value is ready for use.
type Wakeups struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// early has those that were woken before there was a queue.
	early sets.Set[string]
}

// Wake asks for a pass over an extension. It never waits.
func (w *Wakeups) Wake(extension string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		if w.early == nil {
			w.early = sets.New[string]()
		}
		w.early.Insert(extension)
		return
	}
	w.queue.Add(requestFor(extension))
}

// Start gives the wake-ups to the queue of the controller, from now on.
func (w *Wakeups) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	for extension := range w.early {
		queue.Add(requestFor(extension))
	}
	w.early = nil
	return nil
}

// Signal says that something has changed, and not what.
type Signal chan event.TypedGenericEvent[struct{}]

// Send never waits.
func (s Signal) Send() {
	select {
	case s <- event.TypedGenericEvent[struct{}]{}:
	default:
	}
}
