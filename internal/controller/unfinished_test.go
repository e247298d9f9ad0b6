package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/requeue"
)

func TestRemainsOf(t *testing.T) {
	t.Parallel()
	since := time.Unix(1000, 0)
	for name, tc := range map[string]struct {
		after     time.Duration
		want      Remains
		remaining time.Duration
	}{
		"at first":            {want: RemainsStay, remaining: unfinishedWait},
		"later":               {after: unfinishedWait - time.Second, want: RemainsStay, remaining: time.Second},
		"in the end":          {after: unfinishedWait, want: RemainsTakenBack},
		"long after that":     {after: time.Hour, want: RemainsTakenBack},
		"a clock set back":    {after: -time.Second, want: RemainsStay, remaining: unfinishedWait + time.Second},
		"a moment before end": {after: unfinishedWait - 1, want: RemainsStay, remaining: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got, remaining := remainsOf(since, since.Add(tc.after)); got != tc.want || remaining != tc.remaining {
				t.Errorf("remains = %s, %s, want %s, %s", got, remaining, tc.want, tc.remaining)
			}
		})
	}
}

// halfWay is a world in which an upgrade from 1.0.0 to 1.1.0 was begun and failed.
func halfWay(t *testing.T) *world {
	t.Helper()
	w := sampleWorld(t)
	w.installation = installation.State{Installed: installed("1.0.0"), Unfinished: true}
	w.installation.Installed.Inputs = digestOf(nil)
	w.catalog["p"] = offering("1.0.0", "1.1.0").Package
	return w
}

// TestUnfinishedUpgradeIsTakenBackInTheEnd holds one rule against every way in
// which an upgrade that was begun can be stopped.
func TestUnfinishedUpgradeIsTakenBackInTheEnd(t *testing.T) {
	t.Parallel()
	errBoom := errors.New("boom")
	tried := []string{"fetch registry.test/p:v1.1.0", "apply 1.1.0"}
	tests := map[string]struct {
		stop  func(w *world)
		tries []string // what is done of the way forward in each pass
		ends  []string // what of it is done at the end of a pass
		waits bool     // without a retry
	}{
		"nothing found":         {stop: func(w *world) { w.catalog["p"] = offering("2.0.0").Package }, waits: true},
		"package gone":          {stop: func(w *world) { delete(w.catalog, "p") }, waits: true},
		"registry down":         {stop: func(w *world) { w.fetchErr = errBoom }},
		"image gone for good":   {stop: func(w *world) { w.fetchErr = &UnusableImageError{Image: "p"} }, waits: true},
		"refused before writes": {stop: func(w *world) { w.applyErr = errBoom }, tries: tried, ends: []string{"close"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := halfWay(t)
			tc.stop(w)
			pass := func(want ...string) time.Duration {
				t.Helper()
				result, err := w.reconcile(t)
				if _, retried := errors.AsType[*requeue.ReportedError](err); w.passed < unfinishedWait && tc.waits == retried {
					t.Errorf("err = %v, want none to retry: %t", err, tc.waits)
				}
				if diff := cmp.Diff(slices.Concat(tc.tries, want, tc.ends), w.take()); diff != "" {
					t.Errorf("done after %s (-want +got):\n%s", w.passed, diff)
				}
				return result.RequeueAfter
			}
			if again := pass(); again != unfinishedWait {
				t.Errorf("the next pass comes after %s, want %s", again, unfinishedWait)
			}
			w.passed = unfinishedWait - time.Second
			if again := pass(); again != time.Second {
				t.Errorf("the next pass comes after %s, want a second", again)
			}
			if ready := w.ready(t); ready.Status == metav1.ConditionTrue || !strings.Contains(ready.Message, remainsTexts[RemainsStay]) {
				t.Errorf("Ready is %s: %s", ready.Status, ready.Message)
			}
			w.passed = unfinishedWait
			pass("repair")
			if ready := w.ready(t); ready.Status == metav1.ConditionTrue || !strings.Contains(ready.Message, remainsTexts[RemainsTakenBack]) {
				t.Errorf("Ready is %s: %s", ready.Status, ready.Message)
			}
			w.passed = time.Hour
			pass("repair")
		})
	}
}

// TestUnfinishedUpgradeIsTakenBackWithoutATry: it does not take a try to find out that none
// can go on.
func TestUnfinishedUpgradeIsTakenBackWithoutATry(t *testing.T) {
	t.Parallel()
	w := halfWay(t)
	w.applyErr = errors.New("boom")
	for range 9 { // until the next try would come later
		_, _ = w.reconcile(t)
	}
	w.take()
	for _, passed := range []time.Duration{unfinishedWait - 1, unfinishedWait} {
		w.passed = passed
		_, _ = w.reconcileInTime(t)
	}
	if diff := cmp.Diff([]string{"repair"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}

// TestUnfinishedUpgradeGoesOn covers an obstacle that goes away, and another one
// that comes later: the time before anything is taken back begins with each write.
func TestUnfinishedUpgradeGoesOn(t *testing.T) {
	t.Parallel()
	w := halfWay(t)
	w.fetchErr = errors.New("boom")
	_, _ = w.reconcile(t)
	w.take()

	w.passed = unfinishedWait - time.Second
	w.fetchErr, w.applyErr, w.began = nil, errors.New("half-way"), true
	_, _ = w.reconcile(t)
	if diff := cmp.Diff([]string{"fetch registry.test/p:v1.1.0", "apply 1.1.0", "write", "close"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}

	w.passed = unfinishedWait
	w.fetchErr = errors.New("boom")
	_, _ = w.reconcile(t)
	if diff := cmp.Diff([]string(nil), w.take()); diff != "" {
		t.Errorf("done although there was a write lately (-want +got):\n%s", diff)
	}

	w.passed = time.Hour
	w.fetchErr, w.applyErr = nil, nil
	w.mustReconcile(t)
	if diff := cmp.Diff([]string{"fetch registry.test/p:v1.1.0", "apply 1.1.0", "write", "close"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
	if ready := w.ready(t); strings.Contains(ready.Message, "begun") {
		t.Errorf("Ready is %s: %s", ready.Status, ready.Message)
	}
}

// TestUnfinishedUpgradeIsUndoneWithoutACatalog has the installed revision applied
// anew, which also removes what only the other one has.
func TestUnfinishedUpgradeIsUndoneWithoutACatalog(t *testing.T) {
	t.Parallel()
	w := halfWay(t)
	if err := w.client.Delete(t.Context(), &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}}); err != nil {
		t.Fatal(err)
	}
	w.mustReconcile(t)
	if diff := cmp.Diff([]string{"fetch registry.test/p:v1.0.0", "apply 1.0.0", "write", "close"}, w.take()); diff != "" {
		t.Errorf("done (-want +got):\n%s", diff)
	}
}
