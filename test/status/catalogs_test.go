package status_test

import (
	"net/http"
	"testing"
	"testing/fstest"

	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/status"
)

// TestCatalogs holds every status of every catalog against what it serves.
func TestCatalogs(t *testing.T) {
	t.Parallel()
	released := make(chan struct{})
	served := ready("")
	served.name = "served"
	run(t, catalogKind, []situation{
		{
			name:  "catalog-served",
			stage: push("v1", goodCatalog),
			steps: []step{{do: pull("catalog-served.v1"), then: []moment{created(), observed("at work"), served}}},
		},
		{
			name:  "catalog-refused",
			stage: all(push("v1", goodCatalog), refuse(http.StatusForbidden)),
			steps: []step{{do: pull("catalog-refused.v1"), person: true, then: []moment{failed()}}},
		},
		{
			name:  "catalog-missing",
			stage: all(),
			steps: []step{
				{do: pull("catalog-missing.v1"), person: true, then: []moment{failed()}},
				{do: all(push("v2", goodCatalog), move("catalog-missing.v1", "v2")), then: []moment{served}},
			},
		},
		{
			name:  "catalog-broken",
			stage: push("v1", func(string) fstest.MapFS { return brokenCatalog() }),
			steps: []step{{do: pull("catalog-broken.v1"), person: true, then: []moment{failed()}}},
		},
		{
			name:  "catalog-hangs",
			stage: all(push("v1", goodCatalog), stall("/catalog-catalog-hangs/", released)),
			steps: []step{
				{do: pull("catalog-hangs.v1"), then: []moment{created(), observed("at work")}},
				{do: func(*testing.T, *scene) { close(released) }, then: []moment{served}},
			},
		},
		{
			name:  "catalog-moved-to-broken",
			stage: all(push("v1", goodCatalog), push("v2", func(string) fstest.MapFS { return brokenCatalog() })),
			steps: []step{
				{do: pull("catalog-moved-to-broken.v1"), then: []moment{served}},
				{do: move("catalog-moved-to-broken.v2", "v2"), person: true, then: []moment{edited(), failed()}},
			},
		},
		{
			name:  "catalog-withdrawn",
			stage: push("v1", goodCatalog),
			steps: []step{
				{do: pull("catalog-withdrawn.v1"), then: []moment{served}},
				{
					do: changeCatalog(status.Nothing, func(catalog *ocv1.ClusterCatalog) {
						catalog.Spec.AvailabilityMode = ocv1.AvailabilityModeUnavailable
					}),
					then: []moment{edited(), becomes("Serving", "False", "UserSpecifiedUnavailable")},
				},
			},
		},
	})
}

func goodCatalog(name string) fstest.MapFS {
	return testkit.Catalog(registryHost, operator(name, "1.0.0"))
}

func brokenCatalog() fstest.MapFS {
	return fstest.MapFS{"catalog.yaml": {Data: []byte("schema: [")}}
}

func push(tag string, files func(name string) fstest.MapFS) act {
	return func(t *testing.T, s *scene) {
		t.Helper()
		pushCatalog(t, s.name, tag, files(s.name))
	}
}

// pull makes the catalog of the scene.
func pull(wants string) act {
	return func(t *testing.T, s *scene) {
		t.Helper()
		s.wants[1] = wants
		createCatalog(t, s.name, s.name)
	}
}

func refuse(code int) act {
	return func(_ *testing.T, s *scene) { theSuite.Registry.Use(testkit.FailPath("/catalog-"+s.name+"/", code)) }
}

// move has the catalog taken from another tag.
func move(wants, tag string) act {
	return func(t *testing.T, s *scene) {
		t.Helper()
		changeCatalog(wants, func(catalog *ocv1.ClusterCatalog) { catalog.Spec.Source.Image.Ref = catalogRef(s.name, tag) })(t, s)
	}
}

func changeCatalog(wants string, change func(*ocv1.ClusterCatalog)) act {
	return func(t *testing.T, s *scene) {
		t.Helper()
		catalog := &ocv1.ClusterCatalog{}
		if err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Name: s.name}, catalog); err != nil {
			t.Fatal(err)
		}
		before := catalog.DeepCopy()
		change(catalog)
		s.wants[catalog.Generation+1] = wants
		if err := theSuite.Admin.Patch(t.Context(), catalog, client.MergeFrom(before)); err != nil {
			t.Fatal(err)
		}
	}
}
