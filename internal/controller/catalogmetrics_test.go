package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestMetricsOfACatalog follows one from its content to its end.
func TestMetricsOfACatalog(t *testing.T) {
	t.Parallel()
	minutes, unpacked := 10, metav1.NewTime(time.Unix(5000, 0))
	catalog := servedCatalog()
	catalog.Spec.Source.Image = &ocv1.ImageSource{Ref: "example.com/c:v1", PollIntervalMinutes: &minutes}
	catalog.Status.LastUnpacked = &unpacked
	catalog.Status.Conditions = []metav1.Condition{
		{Type: ocv1.TypeServing, Status: metav1.ConditionTrue},
		{Type: ocv1.TypeProgressing, Status: metav1.ConditionUnknown},
		{Type: ocv1.TypeVerified, Status: metav1.ConditionUnknown, Reason: ocv1.ReasonVerificationFailed},
	}
	held := &content{stock: CatalogStock{Packages: 7, Malformed: 2}}
	api := catalogWorld(t, catalog)
	r := newCatalogReconciler(api, held)
	registry := prometheus.NewRegistry()
	var err error
	if r.Metrics, err = NewCatalogMetrics(registry); err != nil {
		t.Fatal(err)
	}
	want := map[string]float64{
		"catalog_condition c,Serving":         1,
		"catalog_condition c,Progressing":     -1,
		"catalog_condition c,Ready":           0,
		"catalog_condition c,Reconciling":     0,
		"catalog_condition c,Stalled":         0,
		"catalog_condition c,Degraded":        0,
		"catalog_image_verdict c,unknown":     1,
		"catalog_content_timestamp_seconds c": 5000,
		"catalog_poll_interval_seconds c":     600,
		"catalog_packages c":                  7,
		"catalog_problems c,package":          2,
		"catalog_problems c,content":          0,
	}
	for _, step := range []struct {
		what       string
		err        error
		unreadable float64
	}{
		{"content", nil, 0},
		{"content that cannot be read", errors.New("boom"), 1},
		{"content again", nil, 0},
	} {
		held.err = step.err
		want["catalog_problems c,content"] = step.unreadable
		if _, err := r.Reconcile(t.Context(), requestFor("c")); (err != nil) != (step.err != nil) {
			t.Fatalf("%s: err = %v", step.what, err)
		}
		if diff := cmp.Diff(want, gather(t, registry, "catalog_")); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.what, diff)
		}
	}
	r.Metrics.Reset()
	if got := gather(t, registry, "catalog_"); len(got) > 0 {
		t.Errorf("left of who acts no more: %v", got)
	}
	if _, err := r.Reconcile(t.Context(), requestFor("c")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, gather(t, registry, "catalog_")); diff != "" {
		t.Errorf("of who acts again (-want +got):\n%s", diff)
	}
	if err := api.Delete(t.Context(), catalog); err != nil {
		t.Fatal(err)
	}
	if _, err := r.Reconcile(t.Context(), requestFor("c")); err != nil {
		t.Fatal(err)
	}
	if got := gather(t, registry, "catalog_"); len(got) > 0 {
		t.Errorf("left of a catalog that is gone: %v", got)
	}
	if _, err := NewCatalogMetrics(registry); err == nil {
		t.Error("they are registered twice")
	}
}

// TestVerdictOfACatalog: each reason of the condition has a verdict, and without one there is none.
func TestVerdictOfACatalog(t *testing.T) {
	t.Parallel()
	for reason, want := range map[string]string{
		"": "", ocv1.ReasonSigned: "accepted", ocv1.ReasonUnsigned: "warned", ocv1.ReasonRefused: "refused", ocv1.ReasonVerificationFailed: "unknown",
	} {
		var conditions []metav1.Condition
		if reason != "" {
			conditions = append(conditions, metav1.Condition{Type: ocv1.TypeVerified, Reason: reason})
		}
		if got := verdictLabelOf(conditions); got != want {
			t.Errorf("%s: %q, want %q", reason, got, want)
		}
	}
}

// TestBrokenContentOfACatalogIsCounted: the condition Degraded decides whether the content counts as broken.
func TestBrokenContentOfACatalogIsCounted(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		degraded string
		unserved bool
		want     float64
	}{
		"F7: broken content over good":           {degraded: ocv1.ReasonContentInvalid, want: 1},
		"F7: broken content, and nothing before": {degraded: ocv1.ReasonContentInvalid, unserved: true, want: 1},
		"F7: the registry is away":               {degraded: ocv1.ReasonSourceUnavailable},
		"F7: good content":                       {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			catalog := servedCatalog()
			if tc.unserved {
				catalog.Status.URLs = nil
			}
			if tc.degraded != "" {
				catalog.Status.Conditions = append(catalog.Status.Conditions, metav1.Condition{
					Type: ocv1.TypeDegraded, Status: metav1.ConditionTrue, Reason: tc.degraded,
				})
			}
			r := newCatalogReconciler(catalogWorld(t, catalog), &content{})
			registry := prometheus.NewRegistry()
			var err error
			if r.Metrics, err = NewCatalogMetrics(registry); err != nil {
				t.Fatal(err)
			}
			if _, err := r.Reconcile(t.Context(), requestFor("c")); err != nil {
				t.Fatal(err)
			}
			if got := gather(t, registry, "catalog_")["catalog_problems c,content"]; got != tc.want {
				t.Errorf("catalog_problems is %v, want %v", got, tc.want)
			}
		})
	}
}
