package controller

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"
	"sigs.k8s.io/controller-runtime/pkg/event"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// needsKubernetes is what nearly every bundle states, and no neighbour can change.
func needsKubernetes() *requirement.Property {
	return &requirement.Property{Type: "olm.csv.metadata", Value: json.RawMessage(`{"minKubeVersion":"1.20.0"}`)}
}

// fleet is a followed world, of which it is counted what is read of it.
type fleet struct {
	*world

	reads int // of objects and packages
}

func newFleet(t *testing.T, objects ...client.Object) *fleet {
	t.Helper()
	f := &fleet{world: worldWith(t, objects...)}
	reader := interceptor.NewClient(f.client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // what newWorld made
		Get: func(ctx context.Context, api client.WithWatch, key client.ObjectKey, object client.Object, options ...client.GetOption) error {
			f.reads++
			return api.Get(ctx, key, object, options...)
		},
		List: func(ctx context.Context, api client.WithWatch, list client.ObjectList, options ...client.ListOption) error {
			err := api.List(ctx, list, options...)
			if extensions, ok := list.(*ocv1.ClusterExtensionList); ok {
				f.reads += len(extensions.Items)
			}
			return err
		},
	})
	f.reconciler.Client, f.reconciler.Catalogs = reader, f
	f.reconciler.Neighbours = NewNeighbours(reader, f)
	f.reconciler.Neighbours.follow()
	return f
}

func (f *fleet) Package(catalog, name string) (*resolve.Prepared, error) {
	f.reads++
	return f.world.Package(catalog, name)
}

// TestPassCostsWhatItsOwnTakes has a pass over one of many extensions look at those
// that concern it.
func TestPassCostsWhatItsOwnTakes(t *testing.T) {
	t.Parallel()
	const extensions, catalogs = 1000, 5
	var objects []client.Object
	for i := range extensions {
		objects = append(objects, other(fmt.Sprintf("e%d", i), "1.0.0"))
	}
	for i := range catalogs - 1 {
		objects = append(objects, &ocv1.ClusterCatalog{})
		objects[extensions+i].SetName(fmt.Sprintf("c%d", i))
	}
	f := newFleet(t, objects...)
	f.catalog["p"] = stating("p", nil, "1.0.0")
	for i := range extensions {
		name := fmt.Sprintf("e%d", i)
		f.catalog[name] = stating(name, map[string][]*requirement.Property{"1.0.0": {needsKubernetes(), needsPackage(fmt.Sprintf("e%d", i+1), "1.x")}}, "1.0.0")
	}
	f.mustReconcile(t) // learns of them all
	f.reads = 0
	f.mustReconcile(t)
	if most := 10 + 2*catalogs; f.reads > most {
		t.Errorf("a pass reads %d objects and packages, want at most %d", f.reads, most)
	}
	f.reconciler.Neighbours.noted().Update(event.UpdateEvent{ObjectOld: objects[0], ObjectNew: objects[0]})
	f.reads = 0
	f.mustReconcile(t)
	if most := 10 + 3*catalogs; f.reads > most {
		t.Errorf("a pass after a change of another extension reads %d objects and packages, want at most %d", f.reads, most)
	}
	f.reads = 0
	if woken := f.matching(t, f.reconciler.concernedBy(t.Context(), other("e7", "1.0.0"))); len(woken) != 2 {
		t.Errorf("woken are %v, want the one that e7 requires and the one that requires it", woken)
	}
	f.reads = 0
	f.matching(t, f.reconciler.concernedBy(t.Context(), other("e8", "1.0.0")))
	if f.reads > extensions+1 {
		t.Errorf("who is concerned takes %d reads", f.reads)
	}
}

// TestNeighboursAreFollowed: what a pass knows of others is what they are now.
func TestNeighboursAreFollowed(t *testing.T) {
	t.Parallel()
	f := newFleet(t, other("q", "1.0.0"))
	f.catalog["q"] = stating("q", map[string][]*requirement.Property{"1.0.0": {needsPackage("p", "1.x")}, "1.1.0": nil}, "1.0.0", "1.1.0")
	neighbours := f.reconciler.Neighbours
	check := func(reason string, others, requirers []string) {
		t.Helper()
		found, requiring, err := neighbours.concerning(t.Context(), concern{extension: "x", pkg: "p", needs: requirement.Needs{Packages: []string{"q", "r"}}})
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(append(others, requirers...), append(names(found), names(requiring)...)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", reason, diff)
		}
	}
	check("at first", []string{"q 1.0.0"}, []string{"q 1.0.0"})

	moved := &ocv1.ClusterExtension{}
	if err := f.client.Get(t.Context(), client.ObjectKey{Name: "q"}, moved); err != nil {
		t.Fatal(err)
	}
	moved.Status.Install.Bundle = ocv1.BundleMetadata{Name: "q.v1.1.0", Version: "1.1.0"}
	if err := f.client.Status().Update(t.Context(), moved); err != nil {
		t.Fatal(err)
	}
	neighbours.noted().Update(event.UpdateEvent{ObjectOld: moved, ObjectNew: moved})
	check("upgraded to what requires nothing", []string{"q 1.1.0"}, nil)

	f.catalog["q"] = stating("q", map[string][]*requirement.Property{"1.1.0": {needsPackage("p", "1.x")}}, "1.1.0")
	neighbours.expire()
	check("its catalog says otherwise", []string{"q 1.1.0"}, []string{"q 1.1.0"})

	if err := f.client.Create(t.Context(), other("r", "1.0.0")); err != nil {
		t.Fatal(err)
	}
	neighbours.noted().Create(event.CreateEvent{Object: other("r", "1.0.0")})
	check("another one", []string{"q 1.1.0", "r 1.0.0"}, []string{"q 1.1.0"})

	if err := f.client.Delete(t.Context(), moved); err != nil {
		t.Fatal(err)
	}
	neighbours.noted().Delete(event.DeleteEvent{Object: moved})
	check("one is gone", []string{"r 1.0.0"}, nil)
}

func names(neighbours []Neighbour) []string {
	var all []string
	for _, n := range neighbours {
		all = append(all, n.Name+" "+n.Bundle.Version)
	}
	return all
}

// TestConcernedNeighboursDecide: to look at those alone that can matter comes to what
// it comes to with all of them.
func TestConcernedNeighboursDecide(t *testing.T) {
	t.Parallel()
	for seed := range uint64(300) {
		random := rand.New(rand.NewPCG(seed, 1))
		all, catalog := randomFleet(random)
		wanted := Wanted{Request: resolve.Request{Package: "a"}}
		observed := Observed{
			Installation: installation.State{Installed: &installation.Revision{Bundle: installedIdentity(other("a", "1.0.0"))}},
			Catalogs:     []resolve.Catalog{{Name: "c", Package: catalog}},
		}
		serves := func(requirement.API) bool { return true }
		complete, concerned := observed, observed
		complete.Surroundings = Surroundings{Kubernetes: "1.36.0", Serves: serves, Neighbours: all, Requirers: all}
		roster := newRoster()
		roster.add(Neighbour{Name: "dropped", Bundle: installedIdentity(other("b", "3.0.0"))})
		for _, n := range append(all, Neighbour{Name: "self", Bundle: observed.Installation.Installed.Bundle}) {
			roster.add(n)
		}
		roster.drop("dropped")
		concerned.Surroundings = Surroundings{Kubernetes: "1.36.0", Serves: serves}
		concerned.Surroundings.Neighbours, concerned.Surroundings.Requirers = roster.concerning(concern{
			extension: "self", pkg: "a", needs: catalog.Needs(), provides: requirement.Provided(statedBy("a.v1.0.0", observed.Catalogs)),
		})
		for _, becomes := range []string{"", "1.0.0", "1.1.0"} {
			next := installedIdentity(other("a", becomes))
			target := &next
			if becomes == "" {
				target = nil
			}
			if diff := cmp.Diff(dependents("a", target, complete), dependents("a", target, concerned)); diff != "" {
				t.Errorf("seed %d: dependents of %q (-all +concerned):\n%s", seed, becomes, diff)
			}
		}
		chosen, err := choose(wanted, nil, complete)
		again, errAgain := choose(wanted, nil, concerned)
		if diff := cmp.Diff(chosen, again, cmpopts.IgnoreUnexported(resolve.Resolution{})); diff != "" || fmt.Sprint(err) != fmt.Sprint(errAgain) {
			t.Errorf("seed %d: chosen (-all +concerned):\n%s%v, %v", seed, diff, err, errAgain)
		}
	}
}

// randomFleet gives neighbours with packages b to f, some of which have one twice, and
// the package a of a catalog.
func randomFleet(random *rand.Rand) ([]Neighbour, *resolve.Prepared) {
	packages := []string{"a", "b", "c", "d", "e", "f"}
	kinds := []requirement.API{thing, {Group: "example.com", Version: "v1", Kind: "Other"}}
	state := func() []*requirement.Property {
		stated := []*requirement.Property{needsKubernetes()}
		for range random.IntN(3) {
			stated = append(stated, [...]*requirement.Property{
				needsPackage(packages[random.IntN(len(packages))], [...]string{"1.0.0", ">=1.1.0", "2.x"}[random.IntN(3)]),
				apiProperty("olm.gvk.required", kinds[random.IntN(2)]),
				apiProperty("olm.gvk", kinds[random.IntN(2)]),
				{Type: "color", Value: json.RawMessage(`"blue"`)},
				{Type: "olm.constraint", Value: json.RawMessage(`{"failureMessage":"needs a blue one","cel":{"rule":"properties.exists(p, p.type == \"color\")"}}`)},
			}[random.IntN(5-random.IntN(2))])
		}
		return stated
	}
	var all []Neighbour
	for i := range random.IntN(6) {
		pkg := packages[1+random.IntN(len(packages)-1)]
		prepared := stating(pkg, map[string][]*requirement.Property{"1.0.0": state()}, "1.0.0")
		facts, required := prepared.Stated(pkg + ".v1.0.0")
		all = append(all, Neighbour{
			Name: fmt.Sprintf("n%d", i), Bundle: installedIdentity(other(pkg, "1.0.0")), Properties: facts.Properties, Requirements: required,
		})
	}
	return all, stating("a", map[string][]*requirement.Property{"1.0.0": state(), "1.1.0": state()}, "1.0.0", "1.1.0")
}
