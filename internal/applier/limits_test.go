package applier

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"
)

// TestHeldAreLookedAtInPart has more custom resources than are looked at for
// finalizers, each of which has one.
func TestHeldAreLookedAtInPart(t *testing.T) {
	t.Parallel()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		asked = append(asked, r.URL.RequestURI())
		limit, err := strconv.Atoi(r.URL.Query().Get("limit"))
		if err != nil {
			limit = 10 * maxHeld
		}
		items := make([]string, 0, limit)
		for i := range limit {
			items = append(items, fmt.Sprintf(`{"metadata": {"name": "n%d", "finalizers": ["a.test/f"]}}`, i))
		}
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"continue": "more"}, "items": [%s]}`, strings.Join(items, ", "))
	}))
	t.Cleanup(server.Close)
	client, err := metadata.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	found := held(t.Context(), client, deletable{kind: "Parcel", defines: schema.GroupVersionResource{Group: "a.test", Version: "v1", Resource: "parcels"}})
	if len(found) != maxHeld || len(asked) != 1 {
		t.Errorf("%d are found with %q, want %d", len(found), asked, maxHeld)
	}
}
