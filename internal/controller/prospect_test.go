package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	gocmp "github.com/google/go-cmp/cmp"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

const wouldCreate = `1 to create; create ConfigMap "made-by-1.1.0"`

// TestSummaryOfAPendingUpgrade is made once for each target and generation, when the image is
// there, and the next process takes it over.
func TestSummaryOfAPendingUpgrade(t *testing.T) {
	t.Parallel()
	w := manualWorld(t, func(*ocv1.ClusterExtension) {})
	pass := func(why, summary string, did ...string) {
		t.Helper()
		w.mustReconcile(t)
		if diff := gocmp.Diff(append([]string{"repair"}, did...), w.take()); diff != "" {
			t.Errorf("%s: done (-want +got):\n%s", why, diff)
		}
		if pending := w.extension(t).Status.Pending; pending == nil || pending.PlanSummary != summary {
			t.Errorf("%s: pending is %+v, want the summary %q", why, pending, summary)
		}
	}
	const pull = "fetch registry.test/p:v1.1.0"
	w.fetching = true
	w.abandoned = 0
	pass("the image is on its way", "")
	if w.abandoned > 0 {
		t.Error("the image that is on its way is given up")
	}
	w.fetching = false
	pass("it is there", wouldCreate, pull, "foresee 1.1.0", "close")
	pass("nothing has changed", wouldCreate)
	w.editSpec(t, func(*ocv1.ClusterExtension) {})
	w.fetching = true
	pass("another spec", wouldCreate)
	w.fetching = false
	pass("its image is there", wouldCreate, pull, "foresee 1.1.0", "close")
	w.reconciler.prospects.Clear()
	pass("another process", wouldCreate)
	w.editSpec(t, func(*ocv1.ClusterExtension) {})
	w.reconciler.prospects.Clear()
	pass("another process, and another spec", wouldCreate, pull, "foresee 1.1.0", "close")
}

// TestSummaryThatCannotBeMade says why, and is tried again. What is installed is no less ready.
func TestSummaryThatCannotBeMade(t *testing.T) {
	t.Parallel()
	for name, breaks := range map[string]func(*world, error){
		"no image":  func(w *world, err error) { w.fetchErr = err },
		"no answer": func(w *world, err error) { w.foreseeErr = err },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := manualWorld(t, func(*ocv1.ClusterExtension) {})
			breaks(w, errors.New("boom"))
			summary := func() string {
				t.Helper()
				result, err := w.reconcileInTime(t)
				if err != nil {
					t.Fatal(err)
				}
				pending := w.extension(t).Status.Pending
				if failed := strings.Contains(pending.PlanSummary, "boom"); failed != (result.RequeueAfter > 0) || result.RequeueAfter > prospectRetry {
					t.Errorf("the next pass is in %s", result.RequeueAfter)
				}
				return pending.PlanSummary
			}
			if got := summary(); got != "what it would do is not known: boom" {
				t.Errorf("the summary is %q", got)
			}
			if ready := w.ready(t); ready.Reason != ocv1.ReasonApprovalPending {
				t.Errorf("Ready is %+v", ready)
			}
			breaks(w, nil)
			w.take()
			w.passed = prospectRetry - time.Second
			if got := summary(); !strings.Contains(got, "boom") || slices.Contains(w.take(), "foresee 1.1.0") {
				t.Errorf("it is tried again before its time: %q", got)
			}
			w.passed = prospectRetry
			if got := summary(); got != wouldCreate {
				t.Errorf("then the summary is %q", got)
			}
		})
	}
}
