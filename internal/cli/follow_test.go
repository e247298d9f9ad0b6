package cli

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"k8s.io/client-go/rest"
)

// TestListsAreBounded has a server that never comes to the end.
func TestListsAreBounded(t *testing.T) {
	t.Parallel()
	requests := 0
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		requests++
		if limit := r.URL.Query().Get("limit"); limit != fmt.Sprint(pageSize) {
			t.Errorf("asked for %s at a time", limit)
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"apiVersion": "olm.operatorframework.io/v1", "kind": "ClusterExtensionList", "metadata": {"continue": "more"}, "items": []}`)
	}))
	t.Cleanup(server.Close)
	extensions, err := newExtensions(&rest.Config{Host: server.URL, QPS: -1})
	if err != nil {
		t.Fatal(err)
	}
	_, _, err = extensions.List(t.Context(), "")
	if err == nil || !strings.Contains(err.Error(), "more than 20000 ClusterExtensions") || requests != maxPages {
		t.Errorf("%d requests, error %v", requests, err)
	}
}
