package requeue

import (
	"context"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/controller/priorityqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"
)

type (
	rateLimiter = workqueue.TypedRateLimiter[reconcile.Request]
	rateLimited = workqueue.TypedRateLimitingInterface[reconcile.Request]
)

// NewQueue makes queues, for the options of a controller. A queue calls asked for each
// object for which somebody asks for a pass, before that pass can begin. It does not call it
// when a pass comes only because a time is over that an earlier pass has named, or because
// of an error.
func NewQueue(asked func(object string)) func(controller string, limiter rateLimiter) rateLimited {
	return func(controller string, limiter rateLimiter) rateLimited {
		return &queue{
			asked: asked,
			PriorityQueue: priorityqueue.New(controller, func(o *priorityqueue.Opts[reconcile.Request]) {
				o.RateLimiter = limiter
			}),
		}
	}
}

// queue adds to each way of asking for a pass that somebody is told of it.
type queue struct {
	priorityqueue.PriorityQueue[reconcile.Request]

	asked func(object string)
}

func (q *queue) Add(request reconcile.Request) {
	q.AddWithOpts(priorityqueue.AddOpts{}, request)
}

func (q *queue) AddAfter(request reconcile.Request, wait time.Duration) {
	q.AddWithOpts(priorityqueue.AddOpts{After: wait}, request)
}

func (q *queue) AddWithOpts(opts priorityqueue.AddOpts, requests ...reconcile.Request) {
	if opts.After <= 0 && !opts.RateLimited {
		for _, request := range requests {
			q.asked(request.Name)
		}
	}
	q.PriorityQueue.AddWithOpts(opts, requests...)
}

// Telling gives a source of a controller with a queue of [NewQueue] another function to be
// told of the passes that it asks for.
func Telling(asked func(object string), from source.Source) source.Source {
	return source.Func(func(ctx context.Context, to rateLimited) error {
		if ours, ok := to.(*queue); ok {
			to = &queue{asked: asked, PriorityQueue: ours.PriorityQueue}
		}
		return from.Start(ctx, to)
	})
}
