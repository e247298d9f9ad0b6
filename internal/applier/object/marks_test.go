package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestOwnedTwice: what is recorded of a revision has the marks of its owner already when it is
// applied anew.
func TestOwnedTwice(t *testing.T) {
	t.Parallel()
	owner := Owner{Name: "x", UID: "u", Namespace: "ns", Package: "p"}
	once := owner.Own(&unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "ConfigMap", "metadata": map[string]any{"name": "a", "labels": map[string]any{"app": "a"}},
	}})
	if diff := cmp.Diff(once.Object, owner.Own(once).Object); diff != "" {
		t.Errorf("objects (-owned once +twice):\n%s", diff)
	}
}
