package drift

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

func TestSelectorsAreBounded(t *testing.T) {
	t.Parallel()
	users := map[string]struct{}{}
	for i := range maxSelected {
		users[fmt.Sprintf("e%02d", i)] = struct{}{}
	}
	if selector, covered := selectorOf(users); len(covered) != maxSelected || !strings.Contains(selector, "e49") {
		t.Errorf("%d are selected: %s", len(covered), selector)
	}
	users["another"] = struct{}{}
	if selector, covered := selectorOf(users); covered != nil || strings.Contains(selector, "e49") {
		t.Errorf("%d are selected: %s", len(covered), selector)
	}
}

// Watches that are closed end, and none begins after them.
func TestClose(t *testing.T) {
	t.Parallel()
	opened, ended := make(chan string, 10), make(chan string, 10)
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		w.(http.Flusher).Flush()
		opened <- req.URL.Path
		<-req.Context().Done()
		ended <- req.URL.Path
	}))
	t.Cleanup(server.Close)
	clients, err := impersonation.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	watches := NewWatches(Config{Clients: clients, Find: func(string) *State { return nil }, Changed: func(string) {}})
	owner := object.Owner{Name: "x", Namespace: "ns", ServiceAccount: "sa"}
	item := func(resource string) []object.Item {
		return []object.Item{{
			Key:     object.Key{GroupKind: schema.GroupKind{Kind: resource}, Namespace: "ns", Name: "a"},
			Mapping: &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}},
		}}
	}
	if !watches.Watch(owner, item("configmaps")) {
		t.Error("no watch begins")
	}
	path := <-opened
	watches.Close()
	if got := <-ended; got != path {
		t.Errorf("%s ends, not %s", got, path)
	}
	if watches.Watch(owner, item("secrets")) || len(watches.active) > 0 {
		t.Errorf("%d watches go on", len(watches.active))
	}
	watches.Unwatch(owner.Name)
	watches.Close()
}
