package controller

import (
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// The first and the longest wait after a failure. The longest is what a cause
// that nobody watches, such as a registry, may cost after it is gone.
const (
	minBackoff = 500 * time.Millisecond
	maxBackoff = 2 * time.Minute
)

// maxFreshStarts is how often the waits begin anew before there is a success or
// another spec. A cause that has another text each time would otherwise be tried
// without end at the shortest wait.
const maxFreshStarts = 8

// maxCauseText is how much of an error tells causes apart, in bytes.
const maxCauseText = 512

// cause is why a pass failed.
type cause struct {
	stage Stage
	text  string
}

func causeOf(stage Stage, err error) cause {
	return cause{stage: stage, text: excerpt.Cut(excerpt.Message(err.Error()), maxCauseText)}
}

// failures are those since the last success under one generation of the spec.
type failures struct {
	generation int64
	seen       []cause // each once
	starts     int     // how often the waits began anew

	// due is when the failures have lasted so long that this is to be told, counted
	// from the last one; zero for never.
	due time.Duration
}

// with takes in another failure. Waits begin anew with another spec, and with a
// cause that was not there before: one that comes back has been waited for already.
func (f failures) with(generation int64, met cause) (_ failures, fresh bool) {
	if f.generation != generation {
		return failures{generation: generation, seen: []cause{met}, starts: 1}, true
	}
	if f.starts >= maxFreshStarts || slices.Contains(f.seen, met) {
		return f, false
	}
	f.seen, f.starts = append(slices.Clip(f.seen), met), f.starts+1
	return f, true
}

// newQueueBackoff is for errors of the queue itself, which the status cannot tell: most
// often it is the status that could not be written.
func newQueueBackoff() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff)
}

// backoff is how long to wait with the next pass after failures. The longer the same
// ones last, the longer.
type backoff struct {
	workqueue.TypedRateLimiter[reconcile.Request]

	mu       sync.Mutex
	failures map[reconcile.Request]failures
}

func newBackoff() *backoff {
	return &backoff{
		TypedRateLimiter: workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff),
		failures:         map[reconcile.Request]failures{},
	}
}

// Forget is called after a success.
func (b *backoff) Forget(extension reconcile.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failures, extension)
	b.TypedRateLimiter.Forget(extension)
}

// failed is to be called before it is asked how long to wait after a failure.
func (b *backoff) failed(extension reconcile.Request, generation int64, met cause) {
	b.mu.Lock()
	defer b.mu.Unlock()
	after, fresh := b.failures[extension].with(generation, met)
	b.failures[extension] = after
	if fresh {
		b.TypedRateLimiter.Forget(extension)
	}
}

// dueIn says when the failures that were told last are to be looked at in any case.
func (b *backoff) dueIn(extension reconcile.Request, due time.Duration) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.failures[extension]
	known.due = due
	b.failures[extension] = known
}

// When says how long to wait after a failure.
func (b *backoff) When(extension reconcile.Request) time.Duration {
	wait := b.TypedRateLimiter.When(extension)
	b.mu.Lock()
	defer b.mu.Unlock()
	return sooner(wait, b.failures[extension].due)
}

// startOver is for a change that may end a failure, and that may take effect late.
func (b *backoff) startOver(extension reconcile.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.failures[extension]
	if known.starts == 0 || known.starts >= maxFreshStarts {
		return
	}
	known.starts++
	b.failures[extension] = known
	b.TypedRateLimiter.Forget(extension)
}
