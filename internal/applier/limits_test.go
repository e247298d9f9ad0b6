package applier

import (
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/metadata"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
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

const itemsOfAPage = 20

// listsForever is an API server whose lists never end.
func listsForever(t *testing.T, deletions *int) (*Applier, *[]string) {
	t.Helper()
	var asked []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		if r.Method == http.MethodDelete {
			*deletions++
			fmt.Fprint(w, `{"kind": "Status", "apiVersion": "v1", "status": "Success"}`)
			return
		}
		asked = append(asked, r.URL.RequestURI())
		items := strings.Repeat(`{"metadata": {"name": "a", "uid": "u"}},`, itemsOfAPage-1) + `{"metadata": {"name": "b", "uid": "v"}}`
		fmt.Fprintf(w, `{"kind": "PartialObjectMetadataList", "apiVersion": "meta.k8s.io/v1", "metadata": {"continue": "more"}, "items": [%s]}`, items)
	}))
	t.Cleanup(server.Close)
	clients, err := impersonation.New(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	return &Applier{clients: clients, memories: map[string]*memory{}}, &asked
}

// TestDefinitionsAreListedInPart has a cluster with definitions without end: which of them
// belong to an extension is not known then.
func TestDefinitionsAreListedInPart(t *testing.T) {
	t.Parallel()
	applier, asked := listsForever(t, new(int))
	if found, err := applier.ownedDefinitions(t.Context(), object.Owner{UID: "none"}); err == nil || len(*asked) != usage.MaxPages {
		t.Errorf("%v are found with %d requests (%v), want %d and an error", found, len(*asked), err, usage.MaxPages)
	}
	if want := fmt.Sprintf("limit=%d", usage.MaxListed); !strings.Contains((*asked)[0], want) {
		t.Errorf("asked for %s, want %s", (*asked)[0], want)
	}
}

// TestCustomResourcesAreDeletedInPart has more of them than a pass deletes.
func TestCustomResourcesAreDeletedInPart(t *testing.T) {
	t.Parallel()
	deletions := 0
	applier, asked := listsForever(t, &deletions)
	client, err := impersonation.As(applier.clients, types.NamespacedName{Namespace: "n", Name: "a"}, metadata.NewForConfigAndClient)
	if err != nil {
		t.Fatal(err)
	}
	if err := deleteAll(t.Context(), client, schema.GroupVersionResource{Group: "a.test", Version: "v1", Resource: "parcels"}, func() error { return nil }); err != nil {
		t.Fatal(err)
	}
	if want := maxDeleted / itemsOfAPage; deletions != maxDeleted || len(*asked) != want {
		t.Errorf("%d deletions and %d lists, want %d and %d", deletions, len(*asked), maxDeleted, want)
	}
}

// TestHeldByASpec: what an older spec has decided is not done for a newer one.
func TestHeldByASpec(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprint(w, `{"kind": "PartialObjectMetadata", "apiVersion": "meta.k8s.io/v1", "metadata": {"name": "x", "uid": "u", "generation": 3, "deletionTimestamp": "2025-01-01T00:00:00Z"}}`)
	}))
	t.Cleanup(server.Close)
	client, err := metadata.NewForConfig(&rest.Config{Host: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	asked := owners{extensions: client.Resource(object.OwnerResource)}
	for generation, want := range map[int64]error{0: nil, 2: object.ErrOwnerGone, 3: nil} {
		owner := object.Owner{Name: "x", UID: "u", Held: true, HeldBy: generation}
		if err := asked.confirm(t.Context(), owner); !errors.Is(err, want) {
			t.Errorf("by generation %d: %v", generation, err)
		}
	}
}
