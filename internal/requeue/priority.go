package requeue

import (
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
)

// Priorities of a pass in the queue. The first is for what somebody waits for; it is what a
// queue takes where nobody says any. The other is for a look at whether anything is to be
// done, and for what has failed before; controller-runtime gives it to all objects that are
// there when a process begins.
const (
	Now   = 0
	Later = handler.LowPriority
)

// Add asks for a pass with a priority. Of two, the higher one counts.
func Add(queue workqueue.TypedRateLimitingInterface[reconcile.Request], name string, priority int) {
	if prioritized, ok := queue.(priorityqueue.PriorityQueue[reconcile.Request]); ok {
		prioritized.AddWithOpts(priorityqueue.AddOpts{Priority: new(priority)}, requestFor(name))
		return
	}
	queue.Add(requestFor(name))
}
