package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/requeue"
)

func aTime() time.Time { return time.Unix(1000, 0) }

// alone is a failure that no other extension shares.
func alone(generation int64, cause cause) failure {
	return failure{generation: generation, cause: cause, cohort: 1}
}

func TestBackoffBeginsAnewWithAnotherCause(t *testing.T) {
	t.Parallel()
	type met struct {
		generation int64
		cause      string // "stage: text"; empty for a success
	}
	same := func(generation int64, cause string, times int) []met {
		all := make([]met, times)
		for i := range all {
			all[i] = met{generation, cause}
		}
		return all
	}
	tests := map[string]struct {
		before []met
		then   met
		want   time.Duration
	}{
		"first":                      {then: met{1, "fetch: a"}, want: minBackoff},
		"same cause":                 {before: same(1, "fetch: a", 3), then: met{1, "fetch: a"}, want: 8 * minBackoff},
		"another text":               {before: same(1, "fetch: a", 3), then: met{1, "fetch: b"}, want: minBackoff},
		"another stage":              {before: same(1, "fetch: a", 3), then: met{1, "apply: a"}, want: minBackoff},
		"another spec":               {before: same(1, "fetch: a", 3), then: met{2, "fetch: a"}, want: minBackoff},
		"same cause after a success": {before: append(same(1, "fetch: a", 3), met{}), then: met{1, "fetch: a"}, want: minBackoff},
		"a cause that comes back": {
			before: append(same(1, "fetch: a", 3), met{1, "fetch: b"}), then: met{1, "fetch: a"}, want: 2 * minBackoff,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := newBackoff(aTime)
			fail := func(f met) time.Duration {
				if f.cause == "" {
					b.Forget(requestFor("x"))
					return 0
				}
				stage, text, _ := strings.Cut(f.cause, ": ")
				b.failed("x", alone(f.generation, causeOf(Stage(stage), errors.New(text))))
				return b.When(requestFor("x"))
			}
			for _, f := range tc.before {
				fail(f)
			}
			b.failed("y", alone(1, causeOf(StageApply, errors.New("of another extension"))))
			if got := fail(tc.then); got != tc.want {
				t.Errorf("it waits for %s, want %s", got, tc.want)
			}
		})
	}
}

// TestNoCauseKeepsBackoffShort has causes that would begin it anew for ever.
func TestNoCauseKeepsBackoffShort(t *testing.T) {
	t.Parallel()
	const tries = 30
	for name, text := range map[string]func(i int) string{
		"two that alternate": func(i int) string { return fmt.Sprint(i % 2) },
		"another each time":  func(i int) string { return fmt.Sprint(i) },
		"addresses": func(i int) string {
			return fmt.Sprintf("read tcp 10.0.0.1:%d->10.0.0.2:443: connection reset by peer", 1000+i)
		},
		"a long text that differs late": func(i int) string { return strings.Repeat("x", maxCauseText) + fmt.Sprint(i) },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b, request := newBackoff(aTime), requestFor("x")
			shortest := 0
			for i := range tries {
				b.failed("x", alone(1, causeOf(StageFetch, errors.New(text(i)))))
				if b.When(request) == minBackoff {
					shortest++
				}
				b.startOver("x")
			}
			if shortest > maxFreshStarts {
				t.Errorf("it waited for the shortest time %d times, more than %d", shortest, maxFreshStarts)
			}
			if got := b.When(request); got != maxBackoff {
				t.Errorf("after %d failures it waits for %s, want %s", tries, got, maxBackoff)
			}
		})
	}
}

func TestNewsBeginBackoffAnew(t *testing.T) {
	t.Parallel()
	b, request := newBackoff(aTime), requestFor("x")
	b.startOver("x")
	denied := failure{generation: 1, cause: causeOf(StageApply, forbidden()), cohort: 1000}
	for range 5 {
		b.failed("x", denied)
	}
	b.startOver("x")
	for i := range promptTries {
		b.failed("x", denied)
		if got, want := b.When(request), minBackoff<<i; got != want {
			t.Errorf("after failure %d it waits for %s, want %s", i+1, got, want)
		}
	}
	b.failed("x", denied)
	if got := b.When(request); got < maxCohortBackoff/2 {
		t.Errorf("after some more tries it waits for %s, as if it failed alone", got)
	}
	b.Forget(request)
	if len(b.failures) > 0 {
		t.Errorf("it remembers %v after a success", b.failures)
	}
}

// TestFailureOf: how many others wait counts for the way forward alone.
func TestFailureOf(t *testing.T) {
	t.Parallel()
	full, broken := errors.New("full"), errors.New("broken")
	for name, tc := range map[string]struct {
		outcome Outcome
		err     error
		cause   cause
		cohort  int
		atLeast time.Duration
	}{
		"the way forward":             {outcome: Outcome{Stage: StageApply, Err: full}, err: full, cause: cause{StageApply, "full"}, cohort: 300, atLeast: time.Minute},
		"written in part":             {outcome: Outcome{Stage: StageApply, Err: full, Began: true}, err: full, cause: cause{StageApply, "full"}, cohort: 1, atLeast: time.Minute},
		"what is installed":           {outcome: Outcome{Stage: StageRepair, RepairErr: broken}, err: broken, cause: cause{StageRepair, "broken"}, cohort: 1},
		"the way forward and repairs": {outcome: Outcome{Stage: StageApply, Err: full, RepairErr: broken}, err: full, cause: cause{StageRepair, "broken"}, cohort: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := failureOf(7, tc.outcome, verdict{again: time.Minute}, membership{size: 300}, tc.err)
			if want := (failure{generation: 7, cause: tc.cause, cohort: tc.cohort, atLeast: tc.atLeast}); got != want {
				t.Errorf("it is %+v, want %+v", got, want)
			}
		})
	}
}

// TestWhatIsDueIsTriedInTime however often something else has failed since.
func TestWhatIsDueIsTriedInTime(t *testing.T) {
	t.Parallel()
	b := newBackoff(aTime)
	met := alone(1, causeOf(StageRepair, errors.New("a")))
	met.due = aTime().Add(time.Minute)
	for range 20 {
		if next := b.failed("x", met); next.After(met.due) {
			t.Fatalf("it is tried %s late", next.Sub(met.due))
		}
	}
}

// TestLateNewsAreHeeded also after so many that the waits do not begin anew any more.
func TestLateNewsAreHeeded(t *testing.T) {
	t.Parallel()
	b := newBackoff(aTime)
	denied := failure{generation: 1, cause: causeOf(StageApply, forbidden()), cohort: 1000}
	for range 2 * maxFreshStarts {
		b.failed("x", denied)
		b.startOver("x")
	}
	if next := b.failed("x", denied); next.Sub(aTime()) > maxBackoff {
		t.Errorf("after the news it waits for %s", next.Sub(aTime()))
	}
}

// TestFailuresAreStalledInTime has waits that are longer than what is left until a
// person has to act.
func TestFailuresAreStalledInTime(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	passes := requeue.Quietly(w.reconciler, w.reconciler.backoff)
	fail := func(text string) (wait time.Duration) {
		w.applyErr = errors.New(text)
		w.reconciler.holds.ask("x")
		result, err := passes.Reconcile(t.Context(), requestFor("x"))
		if err != nil {
			t.Fatal(err)
		}
		return result.RequeueAfter
	}
	fail("b")
	for range 10 {
		fail("a")
	}
	fail("b") // it has been waited for before, and is the answer anew
	w.passed += time.Minute
	if got := fail("b"); got != time.Minute {
		t.Errorf("it waits for %s, want what is left of two minutes", got)
	}
	w.passed += time.Minute
	if got := fail("b"); got != maxBackoff {
		t.Errorf("it waits for %s, want %s", got, maxBackoff)
	}
	if got := inShort(&w.extension(t).Status); !strings.Contains(got, ocv1.TypeStalled) {
		t.Errorf("after two minutes: %s", got)
	}
}

// TestPassesTellBackoffTheirCause covers what a pass returns to the queue.
func TestPassesTellBackoffTheirCause(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	request := requestFor("x")
	fail := func(err error) time.Duration {
		w.applyErr = err
		if _, err := w.reconcile(t); err == nil {
			t.Fatal("the pass did not fail")
		}
		return w.reconciler.backoff.When(request)
	}
	fail(errors.New("a"))
	if got := fail(errors.New("a")); got != 2*minBackoff {
		t.Errorf("after the same failure it waits for %s, want %s", got, 2*minBackoff)
	}
	if got := fail(errors.New("b")); got != minBackoff {
		t.Errorf("after another failure it waits for %s, want %s", got, minBackoff)
	}
}
