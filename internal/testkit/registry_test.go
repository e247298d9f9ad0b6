package testkit_test

import (
	"net/http"
	"testing"
	"testing/fstest"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

func TestRegistry(t *testing.T) {
	t.Parallel()
	registry, err := testkit.StartRegistry()
	if err != nil {
		t.Fatal(err)
	}
	defer registry.Close()
	files := fstest.MapFS{"manifests/a.yaml": {Data: []byte("x")}, "metadata/b.yaml": {Data: []byte("y")}}
	first, err := registry.Push(t.Context(), "pkg:v1", files, map[string]string{"a": "b"})
	if err != nil {
		t.Fatal(err)
	}
	second, err := registry.Push(t.Context(), "pkg:v2", files, map[string]string{"a": "b"})
	if err != nil {
		t.Fatal(err)
	}
	if first != second {
		t.Errorf("equal images have digests %s and %s", first, second)
	}
	if requests := registry.Requests(); len(requests) != 0 {
		t.Errorf("pushes count as requests: %v", requests)
	}
	url := "http://" + registry.Host() + "/v2/pkg/manifests/" + first
	if got := status(t, url); got != http.StatusOK {
		t.Errorf("status = %d, want 200", got)
	}
	registry.Use(testkit.FailPath("/manifests/", http.StatusTeapot))
	if got := status(t, url); got != http.StatusTeapot {
		t.Errorf("status = %d, want that of the fault", got)
	}
	registry.Heal()
	if got := status(t, url); got != http.StatusOK {
		t.Errorf("status = %d after Heal, want 200", got)
	}
	if got := registry.Count("/manifests/"); got != 3 {
		t.Errorf("Count = %d, want 3", got)
	}
}

func status(t *testing.T, url string) int {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	return resp.StatusCode
}
