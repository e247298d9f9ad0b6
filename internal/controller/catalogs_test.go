package controller

import (
	"context"
	"encoding/json"
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/prometheus/client_golang/prometheus"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/fake"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/requeue"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// content is a catalog client that finds what the test says.
type content struct {
	loaded    bool
	packages  map[string]*resolve.Prepared
	reading   func() // what happens meanwhile
	changed   []string
	err       error
	refreshed []CatalogSource
	forgotten []string
	stock     CatalogStock
}

func (c *content) Package(_, name string) (*resolve.Prepared, error) {
	if !c.loaded {
		return nil, errors.New("not loaded")
	}
	return c.packages[name], nil
}

func (c *content) Refresh(_ context.Context, source CatalogSource) ([]string, error) {
	c.loaded = c.loaded || c.err == nil
	if c.reading != nil {
		c.reading()
	}
	c.refreshed = append(c.refreshed, source)
	return c.changed, c.err
}

func (*content) Providers(requirement.API) []resolve.Provider { return nil }

func (c *content) Forget(catalog string) error {
	c.forgotten = append(c.forgotten, catalog)
	return nil
}

func TestCatalogContentWakesWhomItConcerns(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason   string
		content  content
		unserved bool
		fails    bool
		woken    []string
		asked    int
	}{
		"new content":         {reason: "only of package p", content: content{loaded: true, changed: []string{"p"}}, woken: []string{"any", "selecting"}, asked: 1},
		"unchanged content":   {reason: "nobody is concerned", content: content{loaded: true}, asked: 1},
		"first content":       {reason: "who waits for the catalog has to hear that the package is not in it", content: content{}, woken: []string{"any", "other-package", "selecting"}, asked: 1},
		"unreadable at first": {reason: "the reason goes into the status", content: content{err: errors.New("boom")}, fails: true, woken: []string{"any", "other-package", "selecting"}, asked: 1},
		"unreadable later":    {reason: "what was read is still in use", content: content{loaded: true, err: errors.New("boom")}, fails: true, asked: 1},
		"not served":          {reason: "there is nothing to read", content: content{}, unserved: true},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			catalog := servedCatalog()
			if tc.unserved {
				catalog.Status = ocv1.ClusterCatalogStatus{}
			}
			r := newCatalogReconciler(catalogWorld(t, catalog), &tc.content)
			_, err := r.Reconcile(t.Context(), requestFor("c"))
			if (err != nil) != tc.fails {
				t.Errorf("err = %v, want one: %t", err, tc.fails)
			}
			if diff := cmp.Diff(tc.woken, woken(t, r.Wakeups), cmpopts.EquateEmpty()); diff != "" {
				t.Errorf("woken (-want +got): %s\n%s", tc.reason, diff)
			}
			if len(tc.content.refreshed) != tc.asked {
				t.Errorf("asked for %v", tc.content.refreshed)
			}
		})
	}
}

// TestUnreadableCatalogsWakeForNews, and not at every try.
func TestUnreadableCatalogsWakeForNews(t *testing.T) {
	t.Parallel()
	all := []string{"any", "other-package", "selecting"}
	held := &content{}
	r := newCatalogReconciler(catalogWorld(t, servedCatalog()), held)
	for _, step := range []struct {
		what string
		err  error
		want []string
	}{
		{"the first failure", errors.New("refused"), all},
		{"the same again", errors.New("refused"), nil},
		{"another one", errors.New("timed out"), all},
		{"the content", nil, all},
	} {
		held.err, r.Wakeups = step.err, &requeue.Wakeups{}
		_, _ = r.Reconcile(t.Context(), requestFor("c"))
		if diff := cmp.Diff(step.want, woken(t, r.Wakeups)); diff != "" {
			t.Errorf("woken by %s (-want +got):\n%s", step.what, diff)
		}
	}
}

// TestCatalogContentWakesWhoLooksAtOthers covers what a catalog says of others. They
// may have been installed long before, and passed over as unknown.
func TestCatalogContentWakesWhoLooksAtOthers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		states *requirement.Property
		want   bool
	}{
		"a rule":   {states: &requirement.Property{Type: "olm.constraint", Value: json.RawMessage(`{"failureMessage":"no","cel":{"rule":"properties.exists(p, p.type == \"color\")"}}`)}, want: true},
		"a kind":   {states: apiProperty("olm.gvk.required", thing), want: true},
		"packages": {states: needsPackage("r", ">=1.0.0"), want: true},
		"nothing":  {states: &requirement.Property{Type: "color", Value: json.RawMessage(`"blue"`)}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			catalog := servedCatalog()
			held := &content{loaded: true, changed: []string{"p"}, packages: map[string]*resolve.Prepared{
				"q": stating("q", map[string][]*requirement.Property{"1.0.0": {tc.states}}, "1.0.0"),
			}}
			woken := wokenBy(t, newCatalogReconciler(catalogWorld(t, catalog), held))
			if got := slices.Contains(woken, "other-package"); got != tc.want {
				t.Errorf("woken are %v; the one that looks at others is among them: %t, want %t", woken, got, tc.want)
			}
		})
	}
}

// TestCatalogThatIsRelabelledWhileItIsRead covers extensions that have had their
// pass for the new labels, with the old content.
func TestCatalogThatIsRelabelledWhileItIsRead(t *testing.T) {
	t.Parallel()
	catalog := servedCatalog()
	world := catalogWorld(t, catalog)
	held := &content{loaded: true, changed: []string{"p"}, reading: func() {
		relabelled := catalog.DeepCopy()
		relabelled.Labels = map[string]string{"a": "c"}
		if err := world.Patch(t.Context(), relabelled, client.MergeFrom(catalog)); err != nil {
			t.Error(err)
		}
	}}
	woken := wokenBy(t, newCatalogReconciler(world, held))
	if diff := cmp.Diff([]string{"any", "selecting-another"}, woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
}

func servedCatalog() *ocv1.ClusterCatalog {
	return &ocv1.ClusterCatalog{
		ObjectMeta: metav1.ObjectMeta{Name: "c", Labels: map[string]string{"a": "b"}},
		Status: ocv1.ClusterCatalogStatus{
			Conditions:     []metav1.Condition{{Type: ocv1.TypeServing, Status: metav1.ConditionTrue}},
			ResolvedSource: &ocv1.ResolvedCatalogSource{Image: &ocv1.ResolvedImageSource{Ref: "r@sha256:x"}},
			URLs:           &ocv1.ClusterCatalogURLs{Base: "http://c"},
		},
	}
}

// wokenBy gives whom a pass over the catalog wakes.
func wokenBy(t *testing.T, r *CatalogReconciler) []string {
	t.Helper()
	if _, err := r.Reconcile(t.Context(), requestFor("c")); err != nil {
		t.Fatal(err)
	}
	return woken(t, r.Wakeups)
}

func newCatalogReconciler(api client.Client, content *content) *CatalogReconciler {
	metrics, err := NewCatalogMetrics(prometheus.NewRegistry())
	if err != nil {
		panic(err) // there is nothing else in the registry
	}
	return &CatalogReconciler{
		Client: api, Catalogs: content, Neighbours: NewNeighbours(api, content), Wakeups: &requeue.Wakeups{}, Metrics: metrics,
		Stock: func(string) CatalogStock { return content.stock },
	}
}

// woken gives all who were woken before there was a queue, sorted.
func woken(t *testing.T, wakeups *requeue.Wakeups) []string {
	t.Helper()
	queue := workqueue.NewTypedRateLimitingQueue(workqueue.DefaultTypedControllerRateLimiter[reconcile.Request]())
	defer queue.ShutDown()
	if err := wakeups.Start(t.Context(), queue); err != nil {
		t.Fatal(err)
	}
	var names []string
	for queue.Len() > 0 {
		request, _ := queue.Get()
		names = append(names, request.Name)
	}
	slices.Sort(names)
	return names
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
	r := newCatalogReconciler(catalogWorld(t, &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: "c"}}), held)
	if _, err := r.Reconcile(t.Context(), requestFor("gone")); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"gone"}, held.forgotten); diff != "" {
		t.Errorf("forgotten (-want +got):\n%s", diff)
	}
}
