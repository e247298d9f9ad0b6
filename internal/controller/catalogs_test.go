package controller

import (
	"context"
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// content is a catalog client that finds what the test says.
type content struct {
	loaded    bool
	changed   []string
	err       error
	refreshed []CatalogSource
	forgotten []string
}

func (c *content) Package(string, string) (*resolve.Prepared, error) {
	if !c.loaded {
		return nil, errors.New("not loaded")
	}
	return nil, nil
}

func (c *content) Refresh(_ context.Context, source CatalogSource) ([]string, error) {
	c.refreshed = append(c.refreshed, source)
	return c.changed, c.err
}

func (*content) Providers(requirement.API) []Provider { return nil }

func (c *content) Forget(catalog string) error {
	c.forgotten = append(c.forgotten, catalog)
	return nil
}

func TestCatalogContentWakesWhomItConcerns(t *testing.T) {
	t.Parallel()
	served := func(catalog *ocv1.ClusterCatalog) {
		catalog.Status = ocv1.ClusterCatalogStatus{
			Conditions:     []metav1.Condition{{Type: ocv1.TypeServing, Status: metav1.ConditionTrue}},
			ResolvedSource: &ocv1.ResolvedCatalogSource{Image: &ocv1.ResolvedImageSource{Ref: "r@sha256:x"}},
			URLs:           &ocv1.ClusterCatalogURLs{Base: "http://c"},
		}
	}
	tests := map[string]struct {
		reason  string
		content content
		catalog func(*ocv1.ClusterCatalog)
		fails   bool
		woken   []string
		asked   int
	}{
		"new content":         {reason: "only of package p", content: content{loaded: true, changed: []string{"p"}}, catalog: served, woken: []string{"any", "selecting"}, asked: 1},
		"unchanged content":   {reason: "nobody is concerned", content: content{loaded: true}, catalog: served, asked: 1},
		"first content":       {reason: "who waits for the catalog has to hear that the package is not in it", content: content{}, catalog: served, woken: []string{"any", "other-package", "selecting"}, asked: 1},
		"unreadable at first": {reason: "the reason goes into the status", content: content{err: errors.New("boom")}, catalog: served, fails: true, woken: []string{"any", "other-package", "selecting"}, asked: 1},
		"unreadable later":    {reason: "what was read is still in use", content: content{loaded: true, err: errors.New("boom")}, catalog: served, fails: true, asked: 1},
		"not served":          {reason: "there is nothing to read", content: content{}, catalog: func(*ocv1.ClusterCatalog) {}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			catalog := &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"a": "b"}}}
			tc.catalog(catalog)
			wakeups := make(Wakeups, 10)
			r := &CatalogReconciler{Client: catalogWorld(t, catalog), Catalogs: &tc.content, Wakeups: wakeups}
			_, err := r.Reconcile(t.Context(), requestFor("c"))
			if (err != nil) != tc.fails {
				t.Errorf("err = %v, want one: %t", err, tc.fails)
			}
			close(wakeups)
			var woken []string
			for event := range wakeups {
				woken = append(woken, event.Object)
			}
			if diff := cmp.Diff(tc.woken, woken); diff != "" {
				t.Errorf("woken (-want +got): %s\n%s", tc.reason, diff)
			}
			if len(tc.content.refreshed) != tc.asked {
				t.Errorf("asked for %v", tc.content.refreshed)
			}
		})
	}
}

func catalogWorld(t *testing.T, catalog *ocv1.ClusterCatalog) client.Client {
	t.Helper()
	scheme := runtime.NewScheme()
	if err := ocv1.AddToScheme(scheme); err != nil {
		t.Fatal(err)
	}
	named := func(name, pkg string, selector *metav1.LabelSelector) *ocv1.ClusterExtension {
		return &ocv1.ClusterExtension{
			ObjectMeta: metav1.ObjectMeta{Name: name},
			Spec:       ocv1.ClusterExtensionSpec{Source: ocv1.SourceConfig{Catalog: &ocv1.CatalogFilter{PackageName: pkg, Selector: selector}}},
		}
	}
	return fake.NewClientBuilder().WithScheme(scheme).WithObjects(
		catalog,
		named("any", "p", nil),
		named("selecting", "p", &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}),
		named("selecting-another", "p", &metav1.LabelSelector{MatchLabels: map[string]string{"a": "c"}}),
		named("other-package", "q", nil),
	).Build()
}

func TestGoneCatalogsAreForgotten(t *testing.T) {
	t.Parallel()
	held := &content{}
	r := &CatalogReconciler{Client: catalogWorld(t, &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}}), Catalogs: held}
	if _, err := r.Reconcile(t.Context(), requestFor("gone")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"gone"}, held.forgotten); diff != "" {
		t.Errorf("forgotten (-want +got):\n%s", diff)
	}
}
