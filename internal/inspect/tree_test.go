package inspect

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/overview"
)

// treeAPI lets nobody read Secrets, but search the kinds: a list of any kind is what lists has
// for its path, and refused without that.
type treeAPI struct {
	kinds    []string // plural; "configmaps" is of kind configmaps
	lists    map[string]string
	searched atomic.Int32
}

func (a *treeAPI) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Content-Type", "application/json")
	if list, ok := a.lists[r.URL.Path]; ok {
		a.searched.Add(1)
		fmt.Fprint(w, list)
		return
	}
	switch r.URL.Path {
	case "/apis/olm.operatorframework.io/v1/clusterextensions/x":
		fmt.Fprint(w, `{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtension", "metadata": {"name": "x", "uid": "1"},
			"spec": {"namespace": "ns", "serviceAccount": {"name": "i"}, "source": {"sourceType": "Catalog", "catalog": {"packageName": "p"}}},
			"status": {"install": {"bundle": {"name": "p.v1", "version": "1.0.0"}}}}`)
	case "/api":
		fmt.Fprint(w, `{"kind": "APIVersions", "apiVersion": "v1", "versions": []}`)
	case "/apis":
		fmt.Fprint(w, `{"kind": "APIGroupList", "apiVersion": "v1", "groups": [{"name": "g.test",
			"versions": [{"groupVersion": "g.test/v1", "version": "v1"}], "preferredVersion": {"groupVersion": "g.test/v1", "version": "v1"}}]}`)
	case "/apis/g.test/v1":
		var resources []string
		for _, kind := range a.kinds {
			resources = append(resources, fmt.Sprintf(`{"name": %q, "kind": %q, "namespaced": true, "verbs": ["list"]}`, kind, kind))
		}
		fmt.Fprintf(w, `{"kind": "APIResourceList", "apiVersion": "v1", "groupVersion": "g.test/v1", "resources": [
			{"name": "things/status", "kind": "x", "verbs": ["list"]}, {"name": "reviews", "kind": "x", "verbs": ["create"]}, %s]}`, strings.Join(resources, ", "))
	default:
		a.searched.Add(1)
		w.WriteHeader(http.StatusForbidden)
		fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Failure", "reason": "Forbidden", "code": 403, "message": "not you"}`)
	}
}

func (a *treeAPI) tree(t *testing.T) overview.Tree {
	t.Helper()
	server := httptest.NewServer(a)
	t.Cleanup(server.Close)
	cluster, err := New(t.Context(), Config{REST: &rest.Config{Host: server.URL, QPS: -1}, SystemNamespace: "system", Now: time.Now})
	if err != nil {
		t.Fatal(err)
	}
	tree, err := cluster.Tree(t.Context(), "x")
	if err != nil {
		t.Fatal(err)
	}
	return tree
}

func listOf(next string, items ...string) string {
	return fmt.Sprintf(`{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"continue": %q}, "items": [%s]}`, next, strings.Join(items, ", "))
}

func itemOf(name, owner string) string {
	return fmt.Sprintf(`{"metadata": {"namespace": "ns", "name": %q, "ownerReferences": [{"uid": %q}]}}`, name, owner)
}

// TestTreeForThoseWithFewRights finds what may be listed, and says what not.
func TestTreeForThoseWithFewRights(t *testing.T) {
	t.Parallel()
	api := &treeAPI{kinds: []string{"as", "bs", "cs"}, lists: map[string]string{
		"/apis/g.test/v1/as":               listOf("more", itemOf("a", "1"), itemOf("of-another", "2")),
		"/apis/g.test/v1/namespaces/ns/bs": listOf("", itemOf("b", "1")),
	}}
	tree := api.tree(t)
	want := []overview.Object{
		{Group: "g.test", Kind: "as", Namespace: "ns", Name: "a", Health: overview.Unknown, Message: "not you"},
		{Group: "g.test", Kind: "bs", Namespace: "ns", Name: "b", Health: overview.Unknown, Message: "not you"},
	}
	if diff := cmp.Diff(want, tree.Objects); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	unknown := strings.Join(tree.Unknown, "\n")
	for _, text := range []string{
		"which objects are missing, which the release records say: ",
		fmt.Sprintf("whether there are more than %d of as.g.test", usage.MaxListed),
		"which objects there are of kinds that you may not list: cs.g.test",
		`which there are outside of namespace "ns" of kinds that you may not list there: bs.g.test`,
	} {
		if !strings.Contains(unknown, text) {
			t.Errorf("not known is\n%s\nwant in it\n%s", unknown, text)
		}
	}
}

// TestTreeOfAnotherNamespace has records nowhere where they are looked for, and something
// installed.
func TestTreeOfAnotherNamespace(t *testing.T) {
	t.Parallel()
	api := &treeAPI{kinds: []string{"as"}, lists: map[string]string{
		"/api/v1/namespaces/system/secrets": `{"kind": "SecretList", "apiVersion": "v1", "items": []}`,
		"/apis/g.test/v1/as":                listOf("", itemOf("a", "1")),
	}}
	tree := api.tree(t)
	want := []overview.Object{{Group: "g.test", Kind: "as", Namespace: "ns", Name: "a", Health: overview.Unknown, Message: "not you"}}
	if diff := cmp.Diff(want, tree.Objects); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if unknown := strings.Join(tree.Unknown, "\n"); !strings.Contains(unknown, "--system-namespace has to be that of the controller") {
		t.Errorf("not known is\n%s", unknown)
	}
}

// TestSearchesAreBounded has more kinds than are searched.
func TestSearchesAreBounded(t *testing.T) {
	t.Parallel()
	api := &treeAPI{}
	for i := range maxKinds + 2 {
		api.kinds = append(api.kinds, fmt.Sprintf("kind%05d", i))
	}
	tree := api.tree(t)
	// Each is asked for twice, and a few other things are.
	if searched := int(api.searched.Load()); searched < 2*maxKinds || searched > 2*maxKinds+20 {
		t.Errorf("%d requests", searched)
	}
	unknown := strings.Join(tree.Unknown, "\n")
	if !strings.Contains(unknown, "whether there are objects of 2 further kinds") || len(unknown) > 2*maxKindsText {
		t.Errorf("not known is\n%s", unknown)
	}
}

// TestObjectsOfSeveralRevisions: while a release is pending, its records have most objects twice.
func TestObjectsOfSeveralRevisions(t *testing.T) {
	t.Parallel()
	of := func(kind, name string) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{"apiVersion": "g.test/v1", "kind": kind, "metadata": map[string]any{"name": name, "namespace": "ns"}}}
	}
	recorded := []*unstructured.Unstructured{of("Served", "a"), of("Gone", "a"), of("Served", "a"), of("Gone", "a")}
	mapper := meta.NewDefaultRESTMapper(nil)
	mapper.Add(recorded[0].GroupVersionKind(), meta.RESTScopeNamespace)
	look := searching{api: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme())}
	if found := look.recorded(t.Context(), mapper, release.RecordedContent{Objects: recorded}); len(found) != 1 {
		t.Errorf("found %+v", found)
	}
	if diff := cmp.Diff([]string{"what became of recorded objects whose kinds the cluster does not serve: 1"}, look.unknown); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// TestHealthOfAnAPIService is what its status says.
func TestHealthOfAnAPIService(t *testing.T) {
	t.Parallel()
	service := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apiregistration.k8s.io/v1", "kind": "APIService", "metadata": map[string]any{"name": "v1.g.test"},
		"spec": map[string]any{"group": "g.test", "service": map[string]any{"name": "s", "namespace": "ns"}},
		"status": map[string]any{"conditions": []any{map[string]any{
			"type": "Available", "status": "False", "reason": "FailedDiscoveryCheck", "message": "no answer", "lastTransitionTime": "2026-01-01T00:00:00Z",
		}}},
	}}
	resource := schema.GroupVersionResource{Group: "apiregistration.k8s.io", Version: "v1", Resource: "apiservices"}
	look := searching{api: dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), service)}
	found := look.look(t.Context(), object.KeyOf(service), resource, service)
	found.Foreign = false
	shown := overview.MakeTree(overview.Row{}, []overview.Found{found}, nil, time.Now()).Objects[0]
	if shown.Health != overview.NotReady || !strings.Contains(shown.Message, "FailedDiscoveryCheck") {
		t.Errorf("got %+v", shown)
	}
}
