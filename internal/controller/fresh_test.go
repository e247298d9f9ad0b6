package controller

import (
	"errors"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/requeue"
)

// TestFreshPrerequisites writes what an extension depends on a moment before the extension: the first
// reconciles do not find it.
func TestFreshPrerequisites(t *testing.T) {
	t.Parallel()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sa"}}
	fails := func(err error) func(*world) { return func(w *world) { w.applyErr = err } }
	works := func(_ *testing.T, w *world) { w.applyErr = nil }
	tests := map[string]struct {
		lacks   func(*world)
		appears func(*testing.T, *world)
		// isUpgrade changes the spec of an extension that is installed.
		isUpgrade bool
		reports   string // of a cache that never sees it
		isReal    bool   // and therefore reported at once
	}{
		"F8: the ServiceAccount": {
			lacks: func(w *world) { w.dropAccount() },
			appears: func(t *testing.T, w *world) {
				t.Helper()
				if err := w.client.Create(t.Context(), account.DeepCopy()); err != nil {
					t.Fatal(err)
				}
			},
			reports: "does not exist",
		},
		"F8: permissions":                 {lacks: fails(missingRights(6)), appears: works, reports: "6 rights are missing"},
		"F8: permissions, found by a try": {lacks: fails(forbiddenTo("create")), appears: works, reports: "bundle rbac"},
		"F8: the namespace of an object":  {lacks: fails(&object.MissingNamespacesError{Namespaces: []string{"b"}}), appears: works, reports: "namespace"},
		"F8: permissions of an upgrade":   {lacks: fails(missingRights(6)), appears: works, reports: "6 rights are missing", isUpgrade: true},
		"F8: another failure":             {lacks: fails(errors.New("boom")), appears: works, reports: "boom", isReal: true},
		"F8: a quota":                     {lacks: fails(statusError(403, "exceeded quota: small")), appears: works, reports: "quota", isReal: true},
	}
	prepare := func(t *testing.T, isUpgrade bool) *world {
		t.Helper()
		w := sampleWorld(t)
		if isUpgrade {
			w.mustReconcile(t)
			w.mustReconcile(t)
			w.catalog["p"] = offering("1.0.0", "1.1.0").Package
			w.edit(t)
		}
		w.events = nil
		return w
	}
	warnings := func(w *world) string {
		var all []string
		for _, event := range w.events {
			if strings.HasPrefix(event, corev1.EventTypeWarning) {
				all = append(all, event)
			}
		}
		return strings.Join(all, ", ")
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := prepare(t, tc.isUpgrade)
			tc.lacks(w)
			result, err := w.reconcile(t)
			if isQuiet := errors.Is(err, requeue.ErrUnderway) && result.RequeueAfter == freshInterval; isQuiet == tc.isReal {
				t.Errorf("the next reconcile comes after %s, error %v", result.RequeueAfter, err)
			}
			if (warnings(w) != "") != tc.isReal {
				t.Errorf("events: %q", w.events)
			}
			w.passed += freshInterval
			tc.appears(t, w)
			w.events = nil
			w.mustReconcile(t)
			if ready := w.ready(t); ready.Status != metav1.ConditionTrue || warnings(w) != "" {
				t.Errorf("Ready is %s: %s; events: %q", ready.Status, ready.Message, w.events)
			}
		})
		t.Run(name+", never", func(t *testing.T) {
			t.Parallel()
			w := prepare(t, tc.isUpgrade)
			tc.lacks(w)
			for _, w.passed = range []time.Duration{0, freshInterval, freshWait} {
				_, _ = w.reconcile(t)
			}
			if !strings.Contains(warnings(w), tc.reports) {
				t.Errorf("events: %q, want %q", w.events, tc.reports)
			}
			if ready := w.ready(t); ready.Status != metav1.ConditionFalse || !strings.Contains(ready.Message, tc.reports) {
				t.Errorf("Ready is %s: %s", ready.Status, ready.Message)
			}
			if w.extension(t).Status.ObservedGeneration != w.extension(t).Generation {
				t.Error("the status is of another spec")
			}
			w.events, w.writes = nil, nil
			w.passed += time.Second
			_, _ = w.reconcile(t)
			if len(w.events) > 0 || len(w.writes) > 0 {
				t.Errorf("another reconcile has the events %q and writes %v", w.events, w.writes)
			}
		})
	}
}
