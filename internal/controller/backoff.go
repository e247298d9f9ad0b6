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
// longest wait of each of them, however many they are: of more than 200, one is tried more
// often than that.
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
}

// failureOf is what is noted of a way forward that failed. What was written in part does not
// wait for what others fail for.
func failureOf(generation int64, outcome Outcome, v verdict, member membership) failure {
	met := failure{generation: generation, cause: causeOf(outcome.Stage, outcome.Err), cohort: max(member.size, 1), atLeast: v.again}
	if outcome.Began {
		met.cohort = 1
	}
	return met
}

// failedRepairOf is what is noted of a repair that failed. What is installed does not wait for
// what others fail for.
func failedRepairOf(generation int64, outcome Outcome) failure {
	return failure{generation: generation, cause: causeOf(StageRepair, outcome.RepairErr), cohort: 1}
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

	next time.Time // when the work is tried again
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

// anew has the waits begin anew without another failure.
func (f failures) anew() failures {
	if f.starts < maxFreshStarts {
		f.starts++
		f.times, f.prompt = 0, promptTries
	} else {
		f.prompt = max(f.prompt, 1) // it does not wait for the turn of a cohort
	}
	return f
}

// newQueueBackoff is for errors of the queue itself, which the status cannot tell: most
// often it is the status that could not be written.
func newQueueBackoff() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxBackoff)
}

// work is what can fail of an extension: its way forward, or the repair of what is installed.
// Each has waits of its own.
type work struct {
	extension string
	isRepair  bool
}

// worksOf are both of an extension.
func worksOf(extension string) [2]work {
	return [2]work{{extension: extension}, {extension: extension, isRepair: true}}
}

// backoff is how long to wait with the next pass after failures. The longer the same
// ones last, and the more extensions share them, the longer.
type backoff struct {
	now func() time.Time

	mu       sync.Mutex
	failures map[work]failures
}

func newBackoff(now func() time.Time) *backoff {
	return &backoff{now: now, failures: map[work]failures{}}
}

// Forget is called after a success.
func (b *backoff) Forget(extension reconcile.Request) {
	for _, of := range worksOf(extension.Name) {
		b.succeeded(of)
	}
}

// succeeded is for work that does not fail any more.
func (b *backoff) succeeded(of work) {
	b.mu.Lock()
	defer b.mu.Unlock()
	delete(b.failures, of)
}

// failed is to be called before it is asked how long to wait after a failure, and gives the
// time when the work is tried again.
func (b *backoff) failed(of work, met failure) (next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	after := b.failures[of].with(met.generation, met.cause)
	if after.prompt > 0 {
		after.prompt--
		met.cohort = 1
	}
	wait := waitAfter(after.times, met.cohort, placeOf(of.extension))
	after.next = b.now().Add(max(wait, met.atLeast))
	b.failures[of] = after
	return after.next
}

// plan is for work that is tried at a time that an earlier failure has named.
func (b *backoff) plan(of work, next time.Time) {
	b.mu.Lock()
	defer b.mu.Unlock()
	known := b.failures[of]
	known.next = next
	b.failures[of] = known
}

// When says how long it is until something of an extension that has failed is tried again.
func (b *backoff) When(extension reconcile.Request) time.Duration {
	b.mu.Lock()
	defer b.mu.Unlock()
	var next time.Time
	for _, of := range worksOf(extension.Name) {
		if known := b.failures[of].next; !known.IsZero() && (next.IsZero() || known.Before(next)) {
			next = known
		}
	}
	return max(next.Sub(b.now()), minBackoff)
}

// startOver is for a change that may end a failure, and that may take effect late.
func (b *backoff) startOver(extension string) {
	b.mu.Lock()
	defer b.mu.Unlock()
	for _, of := range worksOf(extension) {
		if known := b.failures[of]; known.starts > 0 {
			b.failures[of] = known.anew()
		}
	}
}
