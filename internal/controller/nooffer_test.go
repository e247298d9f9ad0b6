package controller

import (
	"context"
	"errors"
	"strings"
	"testing"

	gocmp "github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/health"
)

// editCatalog changes the only catalog of a world; change deletes it if it returns false.
func (w *world) editCatalog(t *testing.T, change func(*ocv1.ClusterCatalog) bool) {
	t.Helper()
	catalog := &ocv1.ClusterCatalog{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "c"}, catalog); err != nil {
		t.Fatal(err)
	}
	write := w.client.Delete
	if change(catalog) {
		write = func(ctx context.Context, obj client.Object, _ ...client.DeleteOption) error {
			return w.client.Update(ctx, obj)
		}
	}
	if err := write(t.Context(), catalog); err != nil {
		t.Fatal(err)
	}
}

// TestNoOfferKeepsReady deletes, withdraws and breaks the catalog of an extension that runs.
func TestNoOfferKeepsReady(t *testing.T) {
	t.Parallel()
	const (
		running = `"p.v1.0.0" version "1.0.0" is installed; no upgrades can be found: `
		atRest  = "True Succeeded: Desired state reached"
		missing = `True Retrying: error upgrading from currently installed version "1.0.0": no bundles found for package "p"`
		unread  = `True Retrying: error walking catalogs: error getting package "p" from catalog "c": `
		none    = "no catalog that spec.source.catalog.selector selects is available"
		down    = "workloads: "
	)
	deleted := func(*ocv1.ClusterCatalog) bool { return false }
	tests := map[string]struct {
		change      func(t *testing.T, w *world)
		ready, why  string
		progressing string
	}{
		"F5: the last catalog is deleted": {
			change: func(t *testing.T, w *world) { t.Helper(); w.editCatalog(t, deleted) },
			ready:  "True Succeeded", why: none, progressing: atRest,
		},
		"F5: one of two catalogs is deleted": {
			change: func(t *testing.T, w *world) {
				t.Helper()
				w.editCatalog(t, deleted)
				if err := w.client.Create(t.Context(), &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "other"}}); err != nil {
					t.Fatal(err)
				}
				clear(w.catalog)
			},
			ready: "True Succeeded", why: `no catalog has package "p": looked in "other"`, progressing: missing,
		},
		"F5: the package is gone from the catalog": {
			change: func(_ *testing.T, w *world) { clear(w.catalog) },
			ready:  "True Succeeded", why: `no catalog has package "p": looked in "c"`, progressing: missing,
		},
		"F5: the selector matches nothing": {
			change: func(t *testing.T, w *world) {
				t.Helper()
				w.editSpec(t, func(ext *ocv1.ClusterExtension) {
					ext.Spec.Source.Catalog.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"no": "such"}}
				})
			},
			ready: "True Succeeded", why: none, progressing: atRest,
		},
		"F5: the catalog is withdrawn": {
			change: func(t *testing.T, w *world) {
				t.Helper()
				w.editCatalog(t, func(catalog *ocv1.ClusterCatalog) bool {
					catalog.Spec.AvailabilityMode = ocv1.AvailabilityModeUnavailable
					return true
				})
			},
			ready: "True Succeeded", why: none, progressing: atRest,
		},
		"F5: the catalog is not served": {
			change: func(_ *testing.T, w *world) { w.catalogErr = notYetError{} },
			ready:  "True Succeeded", why: `catalog "c" cannot be read: catalog "c" is not being served`, progressing: unread + `catalog "c" is not being served`,
		},
		"F5: the content of the catalog cannot be read": {
			change: func(t *testing.T, w *world) { t.Helper(); w.serve(t); w.catalogErr = errors.New("boom") },
			ready:  "True Succeeded", why: `catalog "c" cannot be read: boom; no other catalog has bundles of package "p"`, progressing: unread + "boom",
		},
		"F5: the package in the catalog is malformed": {
			change: func(t *testing.T, w *world) { t.Helper(); w.serve(t); w.catalogErr = malformedError{} },
			ready:  "True Succeeded", why: "the publisher of the catalog has to fix it", progressing: unread + malformedError{}.Error(),
		},
		"F5: the package is gone, and a workload is down": {
			change: func(_ *testing.T, w *world) {
				clear(w.catalog)
				w.workloads = []health.Workload{{Key: keyOf("Deployment", "ns", "d"), Available: metav1.ConditionFalse, Reason: "down"}}
			},
			ready: "False Unavailable", why: down, progressing: missing,
		},
		"F5: the package is gone, and the extension is suspended": {
			change: func(t *testing.T, w *world) { t.Helper(); clear(w.catalog); w.editSpec(t, suspend) },
			ready:  "True Suspended", why: `no catalog has package "p"`, progressing: "True Succeeded: " + messageSuspended,
		},
		"F5: the package is gone, and another version is wanted": {
			change: func(t *testing.T, w *world) {
				t.Helper()
				clear(w.catalog)
				w.editSpec(t, func(ext *ocv1.ClusterExtension) { ext.Spec.Source.Catalog.Version = "2.x" })
			},
			ready: "False Retrying", progressing: missing + ` matching version "2.x"`,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			w.mustReconcile(t)
			w.mustReconcile(t)
			w.events = nil
			w.take()
			tc.change(t, w)
			if _, err := w.reconcile(t); err != nil {
				t.Error(err)
			}
			if did := strings.Join(w.take(), ", "); did != "repair" && did != "renew" {
				t.Errorf("done: %s", did)
			}
			conditions := w.extension(t).Status.Conditions
			ready := meta.FindStatusCondition(conditions, ocv1.TypeReady)
			if got := string(ready.Status) + " " + ready.Reason; got != tc.ready || !strings.Contains(ready.Message, tc.why) {
				t.Errorf("Ready is %s: %s", got, ready.Message)
			}
			if isKept := ready.Reason != ocv1.ReasonRetrying; isKept != strings.HasPrefix(ready.Message, running) {
				t.Errorf("Ready starts with %q: %t: %s", running, !isKept, ready.Message)
			}
			if ready.Status == metav1.ConditionTrue && len(w.events) > 0 && !strings.HasPrefix(w.events[0], corev1.EventTypeNormal) {
				t.Errorf("events: %q", w.events)
			}
			if diff := gocmp.Diff(tc.progressing, brief(&w.extension(t).Status, ocv1.TypeProgressing)); diff != "" {
				t.Errorf("Progressing (-want +got):\n%s", diff)
			}
			w.writes = nil
			if _, err := w.reconcile(t); err != nil || len(w.writes) > 0 {
				t.Errorf("a second reconcile writes %v, error %v", w.writes, err)
			}
		})
	}
}
