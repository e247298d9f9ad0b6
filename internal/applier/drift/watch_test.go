package drift

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/rest"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

func TestSelectorsAreBounded(t *testing.T) {
	t.Parallel()
	users := map[string][]string{}
	for i := range maxSelected {
		users[fmt.Sprintf("e%02d", i)] = []string{"a"}
	}
	if s := selectionOf(users); len(s.extensions) != maxSelected || !strings.Contains(s.labels, "e49") || s.name != "" {
		t.Errorf("%d are selected: %+v", len(s.extensions), s)
	}
	users["another"] = []string{"a"}
	if s := selectionOf(users); s.extensions != nil || strings.Contains(s.labels, "e49") || !s.covers("x", []string{"b"}) {
		t.Errorf("%d are selected: %+v", len(s.extensions), s)
	}
}

// TestSelectionOf has what a watch is asked for, and whom it serves without being asked for
// again.
func TestSelectionOf(t *testing.T) {
	t.Parallel()
	one := map[string][]string{"x": {"a"}}
	for name, test := range map[string]struct {
		users     map[string][]string
		fields    string
		extension string
		names     []string
		covered   bool
	}{
		"its only object":            {users: one, fields: "metadata.name=a", extension: "x", names: []string{"a"}, covered: true},
		"another object":             {users: one, fields: "metadata.name=a", extension: "x", names: []string{"b"}},
		"one object more":            {users: one, fields: "metadata.name=a", extension: "x", names: []string{"a", "b"}},
		"another extension":          {users: one, fields: "metadata.name=a", extension: "y", names: []string{"a"}},
		"two objects":                {users: map[string][]string{"x": {"a", "b"}}, extension: "x", names: []string{"c"}, covered: true},
		"two extensions":             {users: map[string][]string{"x": {"a"}, "y": {"b"}}, extension: "y", names: []string{"c"}, covered: true},
		"a third extension":          {users: map[string][]string{"x": {"a"}, "y": {"b"}}, extension: "z", names: []string{"c"}},
		"a name that is not a label": {users: map[string][]string{strings.Repeat("x", 64): {"a"}}, extension: "y", names: []string{"b"}, covered: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := selectionOf(test.users)
			if s.fields() != test.fields || s.covers(test.extension, test.names) != test.covered {
				t.Errorf("it asks for %q, covered = %t", s.fields(), s.covers(test.extension, test.names))
			}
		})
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
	watches := NewWatches(Config{Clients: clients, Find: func(string) *State { return nil }, Changed: func(string) {}, Now: time.Now})
	owner := object.Owner{Name: "x", Namespace: "ns", ServiceAccount: "sa"}
	item := func(resource string) []object.Item {
		return []object.Item{{
			Key:     object.Key{GroupKind: schema.GroupKind{Kind: resource}, Namespace: "ns", Name: "a"},
			Mapping: &meta.RESTMapping{Resource: schema.GroupVersionResource{Version: "v1", Resource: resource}},
		}}
	}
	if !watches.Watch(owner, item("configmaps"), AtLeast("")) {
		t.Error("no watch begins")
	}
	path := <-opened
	watches.Close()
	if got := <-ended; got != path {
		t.Errorf("%s ends, not %s", got, path)
	}
	if watches.Watch(owner, item("secrets"), AtLeast("")) || len(watches.active) > 0 {
		t.Errorf("%d watches go on", len(watches.active))
	}
	watches.Unwatch(owner.Name)
	watches.Close()
}

// TestAddressed has events reported to all that have an object of the name, whatever its label
// says: anybody can change that.
func TestAddressed(t *testing.T) {
	t.Parallel()
	running := &watch{users: map[string][]string{"x": {"a", "b"}, "y": {"c"}, "z": {"a"}}}
	if got, want := texts(running.addressed(event{key: keys("a")[0], unknown: true})), []string{"x: unknown", "z: unknown"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
	if got, want := texts(running.addressed(event{owner: "y", key: keys("a")[0]}.deleted())), []string{"x/a: deleted", "y/a: deleted", "z/a: deleted"}; !slices.Equal(got, want) {
		t.Errorf("told %q, want %q", got, want)
	}
}

// TestComesAtTheEndOfTheInitialSync has an extension come as soon as the others were told what was
// deleted: it is told so, too.
func TestComesAtTheEndOfTheInitialSync(t *testing.T) {
	t.Parallel()
	state := NewState()
	done := state.BeginInitialSync(map[object.Key]object.Fingerprint{keys("a")[0]: {UID: "before"}}, false)
	watches := NewWatches(Config{Find: func(string) *State { return state }, Changed: func(string) {}, Now: time.Now})
	kind := keys("a")[0].GroupKind
	running := &watch{kind: kind, users: map[string][]string{}, since: "10", seen: newLastSeen(kind, watches.seen)}
	watches.sync(watchKey{namespace: "ns"}, running, nil, "20")
	if !watches.replay(running, "x", keys("a"), "10") {
		t.Error("it is not told of all")
	}
	select {
	case <-done:
	default:
		t.Error("it goes on to wait")
	}
}
