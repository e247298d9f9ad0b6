package requeue

import (
	"context"
	"sync"

	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Wakeups are objects to look at, by name, from those who notice that something has
// changed. It is a source of a controller. The zero value is ready for use.
type Wakeups struct {
	mu    sync.Mutex
	queue workqueue.TypedRateLimitingInterface[reconcile.Request]
	// early has those that were woken before there was a queue.
	early sets.Set[string]
}

// Wake asks for a pass over an object. It never waits.
func (w *Wakeups) Wake(name string) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.queue == nil {
		if w.early == nil {
			w.early = sets.New[string]()
		}
		w.early.Insert(name)
		return
	}
	w.queue.Add(requestFor(name))
}

// Start gives the wake-ups to the queue of the controller, from now on.
func (w *Wakeups) Start(_ context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	w.queue = queue
	for name := range w.early {
		queue.Add(requestFor(name))
	}
	w.early = nil
	return nil
}

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
