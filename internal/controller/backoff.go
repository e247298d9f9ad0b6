package controller

import (
	"crypto/sha256"
	"encoding/binary"
	"math"
	"slices"
	"sync"
	"time"

	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// The first and the longest wait after a failure of an extension that nobody shares. The
// longest is what a cause that nobody watches, such as a registry, may cost after it is gone.
const (
	minBackoff = 500 * time.Millisecond
	maxBackoff = 2 * time.Minute
)

// cohortPace is the time that a cohort gives each of its extensions: so often one of them
// is tried, and finds out for all whether the common cause is gone. maxCohortBackoff is the
// longest wait of each of them, however many they are.
const (
	cohortPace       = 3 * time.Second
	maxCohortBackoff = 10 * time.Minute
)

// maxFreshStarts is how often the waits begin anew before there is a success or
// another spec. A cause that has another text each time would otherwise be tried
// without end at the shortest wait.
const maxFreshStarts = 8

// promptTries is how many tries after such news as may take effect late come as soon as if
// the extension failed alone.
const promptTries = 3

// maxCauseText is how much of an error tells causes apart, in bytes.
const maxCauseText = 512

// cause is why a pass over one extension failed.
type cause struct {
	stage Stage
	text  string
}

func causeOf(stage Stage, err error) cause {
	return cause{stage: stage, text: excerpt.Cut(excerpt.Message(err.Error()), maxCauseText)}
}

// failure is what matters of one for when the extension is tried again.
type failure struct {
	generation int64
	cause      cause

	// cohort is how many extensions fail for the same common cause, this one among them.
	cohort int

	// atLeast is how long it takes before another try can come to anything else.
	atLeast time.Duration

	// due is when the extension is tried again in any case; zero for never.
	due time.Time
}

// failureOf is what is noted of a pass that failed. What is installed does not wait for what
// others fail for on their way forward, and neither does what was written in part.
func failureOf(generation int64, outcome Outcome, v verdict, member membership, err error) failure {
	met := failure{generation: generation, cause: causeOf(outcome.Stage, err), cohort: max(member.size, 1), atLeast: v.again}
	switch {
	case outcome.RepairErr != nil:
		met.cause, met.cohort, met.atLeast = causeOf(StageRepair, outcome.RepairErr), 1, 0
	case outcome.Began:
		met.cohort = 1
	}
	return met
}

// waitAfter is how long after a failure an extension is tried again unless something that
// concerns it changes. It has failed so many times since its waits began anew. Alone, it
// waits twice as long each time. In a cohort each is tried once in a round, so that their
// tries are spread over it: the first time by its place, from 0 to 1, and then a round later
// each time.
func waitAfter(times, cohort int, place float64) time.Duration {
	own := maxBackoff
	if doublings := times - 1; doublings < 8 {
		own = min(minBackoff<<doublings, maxBackoff)
	}
	round := min(time.Duration(cohort-1)*cohortPace, maxCohortBackoff)
	if times == 1 {
		round = time.Duration(place * float64(round))
	}
	return max(own, round)
}

// placeOf spreads names evenly from 0 to 1, and gives the same each time.
func placeOf(extension string) float64 {
	hash := sha256.Sum256([]byte(extension))
	return float64(binary.BigEndian.Uint32(hash[:])) / math.MaxUint32
}

// failures are those since the last success under one generation of the spec.
type failures struct {
	generation int64
	seen       []cause // each once
	starts     int     // how often the waits began anew
	times      int     // how often it has failed since then
	prompt     int     // how many of the next waits are as if it failed alone

	next time.Time // when it is tried again
}

// with takes in another failure. Waits begin anew with another spec, and with a
// cause that was not there before: one that comes back has been waited for already.
func (f failures) with(generation int64, met cause) failures {
	switch {
	case f.generation != generation:
		f = failures{generation: generation, seen: []cause{met}, starts: 1}
	case f.starts < maxFreshStarts && !slices.Contains(f.seen, met):
		f.seen, f.starts, f.times = append(slices.Clip(f.seen), met), f.starts+1, 0
	}
	f.times++
	return f
}

// newQueueBackoff is for errors of the queue itself, which the status cannot tell: most
// often it is the status that could not be written.
func newQueueBackoff() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff)
}

// backoff is how long to wait with the next pass after failures. The longer the same
// ones last, and the more extensions share them, the longer.
type backoff struct {
	now func() time.Time

	mu       sync.Mutex
	failures map[string]failures // by extension
}

func newBackoff(now func() time.Time) *backoff {
	return &backoff{now: now, failures: map[string]failures{}}
}

// Forget is called after a success.
func (b *backoff) Forget(extension reconcile.Request) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failures, extension.Name)
}

// failed is to be called before it is asked how long to wait after a failure, and gives the
// time when the extension is tried again.
func (b *backoff) failed(extension string, met failure) (next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	after := b.failures[extension].with(met.generation, met.cause)
	if after.prompt > 0 {
		after.prompt--
		met.cohort = 1
	}
	wait := waitAfter(after.times, met.cohort, placeOf(extension))
	after.next = b.now().Add(max(wait, met.atLeast))
	if !met.due.IsZero() && after.next.After(met.due) {
		after.next = met.due
	}
	b.failures[extension] = after
	return after.next
}

// When says how long it is until an extension that has failed is tried again.
func (b *backoff) When(extension reconcile.Request) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	return max(b.failures[extension.Name].next.Sub(b.now()), minBackoff)
}

// startOver is for a change that may end a failure, and that may take effect late.
func (b *backoff) startOver(extension string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.failures[extension]
	switch {
	case known.starts == 0:
		return
	case known.starts < maxFreshStarts:
		known.starts++
		known.times, known.prompt = 0, promptTries
	default:
		known.prompt = max(known.prompt, 1) // it does not wait for the turn of a cohort
	}
	b.failures[extension] = known
}
