package object_test

import (
	"errors"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestOutsideLacking: what is in a namespace that is lacking is left out, unless the namespace comes with
// it.
func TestOutsideLacking(t *testing.T) {
	t.Parallel()
	made := func(kind, namespace, name string) *unstructured.Unstructured {
		found := &unstructured.Unstructured{}
		found.SetAPIVersion("v1")
		found.SetKind(kind)
		found.SetNamespace(namespace)
		found.SetName(name)
		return found
	}
	asked := map[string]int{}
	lacks := func(namespace string) bool {
		asked[namespace]++
		return namespace != "there"
	}
	objects := []*unstructured.Unstructured{
		made("Namespace", "", "coming"), made("ConfigMap", "coming", "a"), made("Secret", "gone", "b"), made("Secret", "there", "c"),
		made("Secret", "gone", "d"), made("Secret", "also", "e"), made("PersistentVolume", "", "f"),
	}
	elsewhere, err := object.OutsideLacking(lacks, objects)
	var names []string
	for _, left := range elsewhere {
		names = append(names, left.GetName())
	}
	if diff := cmp.Diff([]string{"coming", "a", "c", "f"}, names); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	missing, ok := errors.AsType[*object.MissingNamespacesError](err)
	const want = `namespaces "also", "gone" do not exist, or are being deleted`
	if !ok || missing.Error() != want || missing.Summary() != want {
		t.Errorf("error %v", err)
	}
	if asked["gone"] != 1 || asked[""] > 0 || asked["coming"] > 0 {
		t.Errorf("asked %v", asked)
	}
	if elsewhere, err := object.OutsideLacking(lacks, objects[:2]); len(elsewhere) != 2 || err != nil {
		t.Errorf("got %v, %v", elsewhere, err)
	}
}
