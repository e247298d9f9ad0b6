package migration

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/client-go/rest"
)

// site is an API server that has classic OLM, with lists of what its kinds are said to have.
type site struct {
	lists    map[string]string // the items of a list, by its resource
	endless  bool              // there is always one more page
	requests map[string]int
}

func (s *site) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	resource := r.URL.Path[strings.LastIndex(r.URL.Path, "/")+1:]
	s.requests[resource]++
	items, isServed := s.lists[resource]
	w.Header().Set("Content-Type", "application/json")
	if !isServed {
		w.WriteHeader(http.StatusNotFound)
		fmt.Fprint(w, `{"kind":"Status","apiVersion":"v1","status":"Failure","reason":"NotFound","code":404}`)
		return
	}
	next := ""
	if s.endless {
		next = "more"
	}
	fmt.Fprintf(w, `{"kind":"List","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"continue":%q},"items":[%s]}`, next, items)
}

func (s *site) cluster(t *testing.T) *Cluster {
	t.Helper()
	return clusterAt(t, s, s)
}

// clusterAt is the cluster of a site that a handler serves.
func clusterAt(t *testing.T, handler http.Handler, s *site) *Cluster {
	t.Helper()
	s.requests = map[string]int{}
	return served(t, handler)
}

// served returns a cluster whose API server is the handler.
func served(t *testing.T, handler http.Handler) *Cluster {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	cluster, err := New(&rest.Config{Host: server.URL, QPS: -1}, nil)
	if err != nil {
		t.Fatal(err)
	}
	return cluster
}

func catalogSource(name, strategy string) string {
	return fmt.Sprintf(`{"kind":"CatalogSource","apiVersion":"operators.coreos.com/v1alpha1","metadata":{"namespace":"olm","name":%q},
"spec":{"sourceType":"grpc","image":"registry.test/%s:v1"%s}}`, name, name, strategy)
}

// A CatalogSource whose update strategy says nothing is one without; its type cannot decode it.
func TestCatalogsAreRead(t *testing.T) {
	t.Parallel()
	s := &site{lists: map[string]string{"subscriptions": "", "catalogsources": strings.Join([]string{
		catalogSource("none", ""), catalogSource("empty", `,"updateStrategy":{}`), catalogSource("null", `,"updateStrategy":{"registryPoll":null}`),
		catalogSource("poll", `,"updateStrategy":{"registryPoll":{"interval":"30m"}}`),
		catalogSource("wrong", `,"updateStrategy":{"registryPoll":{"interval":"often"}}`),
	}, ",")}}
	moves, err := s.cluster(t).Catalogs(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	got := map[string]int{}
	for _, move := range moves {
		got[move.Catalog.Name] = 0
		if minutes := move.Catalog.Spec.Source.Image.PollIntervalMinutes; minutes != nil {
			got[move.Catalog.Name] = *minutes
		}
	}
	if diff := cmp.Diff(map[string]int{"none": 0, "empty": 0, "null": 0, "poll": 30, "wrong": 15}, got); diff != "" {
		t.Errorf("minutes (-want +got)\n%s", diff)
	}
}

func TestNoClassicOLM(t *testing.T) {
	t.Parallel()
	if _, err := (&site{}).cluster(t).Catalogs(t.Context()); !errors.Is(err, ErrNoClassic) {
		t.Errorf("catalogs: %v", err)
	}
	if _, err := (&site{}).cluster(t).Read(t.Context()); !errors.Is(err, ErrNoClassic) {
		t.Errorf("all: %v", err)
	}
}

// Without Subscriptions there would seem to be no operators.
func TestSubscriptionsThatCannotBeRead(t *testing.T) {
	t.Parallel()
	s := &site{lists: map[string]string{"catalogsources": ""}}
	if _, err := s.cluster(t).Check(t.Context(), Options{}); err == nil || !strings.Contains(err.Error(), "listing subscriptions") {
		t.Errorf("a check says %v", err)
	}
}

// InstallPlans can be as large as an object can be, and what they have made is not kept.
func TestPlansAreReadWithoutManifests(t *testing.T) {
	t.Parallel()
	s := &site{lists: map[string]string{"subscriptions": "", "catalogsources": "", "installplans": `{"kind":"InstallPlan","metadata":{"namespace":"team","name":"plan"},
"spec":{"clusterServiceVersionNames":["sample.v1"]},"status":{"plan":[{"resolving":"sample.v1","resource":{"group":"","kind":"ConfigMap","name":"one","manifest":"{}"}}]}}`}}
	found, err := s.cluster(t).Read(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	if len(found.Plans) != 1 || len(found.Plans[0].Status.Plan) != 1 {
		t.Fatalf("plans: %v", found.Plans)
	}
	if resource := found.Plans[0].Status.Plan[0].Resource; resource.Name != "one" || resource.Manifest != "" {
		t.Errorf("step: %v", resource)
	}
	// What could not be read is said, and stops nothing else.
	isTold := func(kind string) bool {
		return slices.ContainsFunc(found.Unknown, func(line string) bool { return strings.HasPrefix(line, "listing "+kind) })
	}
	if !isTold("clusterserviceversions") || !isTold("deployments") || isTold("installplans") || isTold("clusterextensions") {
		t.Errorf("not known: %q", found.Unknown)
	}
}

func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	s := &site{endless: true, lists: map[string]string{"subscriptions": "", "catalogsources": "", "clustercatalogs": ""}}
	_, err := s.cluster(t).Catalogs(t.Context())
	if err == nil || !strings.Contains(err.Error(), "more than 200 pages") || s.requests["catalogsources"] != maxPages {
		t.Errorf("%d requests, %v", s.requests["catalogsources"], err)
	}
}
