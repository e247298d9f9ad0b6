package controller

import (
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

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
				b.failed(work{extension: "x"}, alone(f.generation, causeOf(Stage(stage), errors.New(text))))
				return b.When(requestFor("x"))
			}
			for _, f := range tc.before {
				fail(f)
			}
			b.failed(work{extension: "y"}, alone(1, causeOf(StageApply, errors.New("of another extension"))))
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
				b.failed(work{extension: "x"}, alone(1, causeOf(StageFetch, errors.New(text(i)))))
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
		b.failed(work{extension: "x"}, denied)
	}
	b.startOver("x")
	for i := range promptTries {
		b.failed(work{extension: "x"}, denied)
		if got, want := b.When(request), minBackoff<<i; got != want {
			t.Errorf("after failure %d it waits for %s, want %s", i+1, got, want)
		}
	}
	b.failed(work{extension: "x"}, denied)
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
		want    failure
	}{
		"the way forward": {
			outcome: Outcome{Stage: StageApply, Err: full},
			want:    failure{generation: 7, cause: cause{StageApply, "full"}, cohort: 300, atLeast: time.Minute},
		},
		"written in part": {
			outcome: Outcome{Stage: StageApply, Err: full, Began: true},
			want:    failure{generation: 7, cause: cause{StageApply, "full"}, cohort: 1, atLeast: time.Minute},
		},
		"while repairs fail": {
			outcome: Outcome{Stage: StageApply, Err: full, RepairErr: broken},
			want:    failure{generation: 7, cause: cause{StageApply, "full"}, cohort: 300, atLeast: time.Minute},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := failureOf(7, tc.outcome, verdict{again: time.Minute}, membership{size: 300}); got != tc.want {
				t.Errorf("it is %+v, want %+v", got, tc.want)
			}
		})
	}
	if got, want := failedRepairOf(7, Outcome{RepairErr: broken}), (failure{generation: 7, cause: cause{StageRepair, "broken"}, cohort: 1}); got != want {
		t.Errorf("a repair is %+v, want %+v", got, want)
	}
}

// TestRepairsAndWayForwardWaitApart: the sooner one counts for the next pass, and each only
// for as long as it fails.
func TestRepairsAndWayForwardWaitApart(t *testing.T) {
	t.Parallel()
	b, request := newBackoff(aTime), requestFor("x")
	forward, repair := work{extension: "x"}, work{extension: "x", isRepair: true}
	wants := func(what string, want time.Duration) {
		t.Helper()
		if got := b.When(request); got != want {
			t.Errorf("%s it waits for %s, want %s", what, got, want)
		}
	}
	for range 20 {
		b.failed(forward, alone(1, causeOf(StageApply, errors.New("a"))))
	}
	b.failed(repair, alone(1, causeOf(StageRepair, errors.New("b"))))
	wants("with both", minBackoff)
	b.succeeded(repair)
	wants("without the repair", maxBackoff)
	for range 20 {
		b.failed(repair, alone(1, causeOf(StageRepair, errors.New("b"))))
	}
	b.plan(forward, aTime().Add(time.Second))
	wants("with a time that was named before", time.Second)
	b.Forget(request)
	if len(b.failures) > 0 {
		t.Errorf("it remembers %v after a success", b.failures)
	}
}

// TestFailedRepairsAreNoTurns: an upgrade that many are refused waits for its turn although
// the repair of what is installed fails too, and is tried again soon.
func TestFailedRepairsAreNoTurns(t *testing.T) {
	t.Parallel()
	w := upgradableWorld(t)
	w.applyErr, w.repairErr = errors.New("the range is full"), errors.New("no repair")
	_, _ = w.reconcile(t)
	shared := w.reconciler.cohorts.attempts["x"]
	for i := range 1000 {
		w.reconciler.cohorts.met(fmt.Sprint(i), shared)
	}
	w.take()
	_, _ = w.reconcile(t)
	for range 10 {
		w.take()
		w.passed += w.reconciler.backoff.When(requestFor("x"))
		_, _ = w.reconcileInTime(t)
		if diff := cmp.Diff([]string{"repair"}, w.take()); diff != "" {
			t.Fatalf("after %s (-want +got):\n%s", w.passed, diff)
		}
		if w.passed > maxBackoff {
			break
		}
	}
}

// TestLateNewsAreHeeded also after so many that the waits do not begin anew any more.
func TestLateNewsAreHeeded(t *testing.T) {
	t.Parallel()
	b := newBackoff(aTime)
	denied := failure{generation: 1, cause: causeOf(StageApply, forbidden()), cohort: 1000}
	for range 2 * maxFreshStarts {
		b.failed(work{extension: "x"}, denied)
		b.startOver("x")
	}
	if next := b.failed(work{extension: "x"}, denied); next.Sub(aTime()) > maxBackoff {
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
