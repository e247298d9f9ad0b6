package controller

import (
	"errors"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// shelves are catalogs by name with their packages by name.
type shelves map[string]map[string]*resolve.Prepared

// stocked makes the content of the world's catalogs differ.
type stocked struct {
	Catalogs

	shelves shelves
}

// stock gives each catalog content of its own.
func (w *world) stock(content shelves) {
	w.reconciler.Catalogs = stocked{Catalogs: w, shelves: content}
	w.reconciler.Neighbours = NewNeighbours(w.client, w.reconciler.Catalogs)
}

func (s stocked) Package(catalog, name string) (*resolve.Prepared, error) {
	packages, held := s.shelves[catalog]
	if !held {
		return nil, errors.New("not loaded")
	}
	return packages[name], nil
}

func named(value string) *metav1.LabelSelector {
	return &metav1.LabelSelector{MatchLabels: map[string]string{ocv1.MetadataNameLabel: value}}
}

// disguised is a catalog with the name label of another.
func disguised(name, label string, priority int32) *ocv1.ClusterCatalog {
	catalog := servedCatalog()
	catalog.Name, catalog.Labels = name, map[string]string{ocv1.MetadataNameLabel: label, "a": "b"}
	catalog.Spec.Priority = priority
	return catalog
}

// TestSelectors: what the name label of a catalog says does not matter, only what it
// should say.
func TestSelectors(t *testing.T) {
	t.Parallel()
	expression := func(operator metav1.LabelSelectorOperator, values ...string) *metav1.LabelSelector {
		return &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: ocv1.MetadataNameLabel, Operator: operator, Values: values},
		}}
	}
	const in, notIn = metav1.LabelSelectorOpIn, metav1.LabelSelectorOpNotIn
	for name, tc := range map[string]struct {
		selector *metav1.LabelSelector
		want     bool
	}{
		"none":               {selector: nil, want: true},
		"its name":           {selector: named("c"), want: true},
		"its label":          {selector: named("other")},
		"its name, in":       {selector: expression(in, "a", "c"), want: true},
		"its label, in":      {selector: expression(in, "a", "other")},
		"its name, not in":   {selector: expression(notIn, "c")},
		"its label, not in":  {selector: expression(notIn, "other"), want: true},
		"has one":            {selector: expression(metav1.LabelSelectorOpExists), want: true},
		"has none":           {selector: expression(metav1.LabelSelectorOpDoesNotExist)},
		"another label":      {selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "b"}}, want: true},
		"another value":      {selector: &metav1.LabelSelector{MatchLabels: map[string]string{"a": "c"}}},
		"a label it lacks":   {selector: &metav1.LabelSelector{MatchLabels: map[string]string{"z": ""}}},
		"name, and a label":  {selector: &metav1.LabelSelector{MatchLabels: map[string]string{ocv1.MetadataNameLabel: "c", "a": "b"}}, want: true},
		"label, and a label": {selector: &metav1.LabelSelector{MatchLabels: map[string]string{ocv1.MetadataNameLabel: "other", "a": "b"}}},
	} {
		unlabelled := servedCatalog()
		for how, catalog := range map[string]*ocv1.ClusterCatalog{"disguised": disguised("c", "other", 0), "not labelled yet": unlabelled} {
			t.Run(name+", "+how, func(t *testing.T) {
				t.Parallel()
				if got := selects(&ocv1.CatalogFilter{Selector: tc.selector}, catalog); got != tc.want {
					t.Errorf("selected: %t, want %t", got, tc.want)
				}
			})
		}
	}
}

// TestDisguisedCatalogIsNotDrawnFrom: neither its content nor its priority count for
// those who select the catalog whose name it bears, and it is no second one for them.
func TestDisguisedCatalogIsNotDrawnFrom(t *testing.T) {
	t.Parallel()
	for name, priority := range map[string]int32{"higher": 1000, "the same": 0} {
		t.Run(name+" priority", func(t *testing.T) {
			t.Parallel()
			ext := sampleExtension()
			ext.Spec.Source.Catalog.Selector = named("good")
			w := newWorld(t, ext,
				&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: "ns", Name: "sa"}},
				disguised("good", "good", 0), disguised("evil", "good", priority))
			w.stock(shelves{"good": {"p": offering("1.0.0").Package}, "evil": {"p": offering("6.6.6").Package}})
			w.mustReconcile(t)
			w.mustReconcile(t)
			if !slices.Contains(w.did, "apply 1.0.0") {
				t.Errorf("did %v; Ready is %+v", w.did, w.ready(t))
			}
			explanation, err := w.reconciler.Explain(t.Context(), ext.Name)
			if err != nil || explanation.Err != nil || explanation.Resolution == nil || explanation.Resolution.Catalog != "good" {
				t.Errorf("explained by %+v, %v", explanation, err)
			}
		})
	}
}

// TestDisguisedCatalogWakesItsOwn: who selects the name that it bears has nothing to
// expect of new content.
func TestDisguisedCatalogWakesItsOwn(t *testing.T) {
	t.Parallel()
	world := catalogWorld(t, disguised("c", "other", 0))
	for _, name := range []string{"c", "other"} {
		ext := &ocv1.ClusterExtension{
			ObjectMeta: metav1.ObjectMeta{Name: "selecting-" + name},
			Spec:       ocv1.ClusterExtensionSpec{Source: ocv1.SourceConfig{Catalog: &ocv1.CatalogFilter{PackageName: "p", Selector: named(name)}}},
		}
		if err := world.Create(t.Context(), ext); err != nil {
			t.Fatal(err)
		}
	}
	woken := wokenBy(t, newCatalogReconciler(world, &content{loaded: true, changed: []string{"p"}}))
	if diff := cmp.Diff([]string{"any", "selecting", "selecting-c"}, woken); diff != "" {
		t.Errorf("woken (-want +got):\n%s", diff)
	}
}

// TestWhatNeighboursStateIsFromTheirCatalogs: of several catalogs with the installed
// bundle of another extension, one that it selects says what it requires; the others
// only if none of those has it any more.
func TestWhatNeighboursStateIsFromTheirCatalogs(t *testing.T) {
	t.Parallel()
	requires := func(pkg string) *resolve.Prepared {
		return stating("q", map[string][]*requirement.Property{"1.0.0": {needsPackage(pkg, ">=1.0.0")}}, "1.0.0")
	}
	for name, tc := range map[string]struct {
		shelves shelves
		want    []string
	}{
		"the others come first": {shelves: shelves{"a": {"q": requires("forged")}, "good": {"q": requires("true")}, "z": {"q": requires("forged")}}, want: []string{"true"}},
		"the only one":          {shelves: shelves{"good": {"q": requires("true")}}, want: []string{"true"}},
		"gone from its catalog": {shelves: shelves{"a": {"q": requires("elsewhere")}, "good": {}, "z": {"q": requires("further")}}, want: []string{"elsewhere"}},
		"nowhere":               {shelves: shelves{"a": {}}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			neighbour := other("q", "1.0.0")
			neighbour.Spec.Source.Catalog.Selector = named("good")
			w := newWorld(t, neighbour, disguised("a", "good", 0), disguised("good", "good", 0), disguised("z", "good", 0))
			w.stock(tc.shelves)
			found, _, err := w.reconciler.Neighbours.concerning(t.Context(), concern{extension: "x", needs: requirement.Needs{AnyPackage: true}})
			if err != nil || len(found) != 1 {
				t.Fatalf("found %+v, %v", found, err)
			}
			if diff := cmp.Diff(tc.want, found[0].Requirements.Needs().Packages); diff != "" {
				t.Errorf("it requires (-want +got):\n%s", diff)
			}
		})
	}
}
