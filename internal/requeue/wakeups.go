package requeue

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Wakeups are objects to look at, by name, from those who notice that something has
// changed. It is a source of a controller. The zero value is ready for use.
type Wakeups struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// early has the priorities of those that were woken before there was a queue.
	early map[string]int
}

// Wake asks for a pass over an object. It never waits.
func (w *Wakeups) Wake(name string) { w.WakeWith(name, Now) }

// WakeWith is Wake with a priority.
func (w *Wakeups) WakeWith(name string, priority int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue != nil {
		Add(w.queue, name, priority)
		return
	}
	if w.early == nil {
		w.early = map[string]int{}
	}
	if before, known := w.early[name]; !known || before < priority {
		w.early[name] = priority
	}
}

// Start gives the wake-ups to the queue of the controller, from now on.
func (w *Wakeups) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	for name, priority := range w.early {
		Add(queue, name, priority)
	}
	w.early = nil
	return nil
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
