package installation_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

func TestRepaired(t *testing.T) {
	t.Parallel()
	key := func(kind, namespace, name string) object.Key {
		return object.Key{GroupKind: schema.GroupKind{Kind: kind}, Namespace: namespace, Name: name}
	}
	service, changed, flapping := key("Service", "a", "s"), key("ConfigMap", "b", "c"), key("ConfigMap", "a", "d")
	inherited := key("ConfigMap", "a", "left by an earlier extension")
	result := installation.Result{
		Changes: map[object.Key]object.Change{
			service: object.Created, changed: object.Updated, flapping: object.Updated, key("Secret", "a", "same"): object.Unchanged,
			inherited: object.Updated,
		},
		Differences: map[object.Key]object.Difference{
			changed: {Fields: []string{"data.a", "metadata.ownerReferences"}}, inherited: {Fields: []string{"metadata.ownerReferences"}, OnlyOwners: true},
		},
		Flapping: []object.Flapping{{Object: flapping}},
	}
	if diff := cmp.Diff([]object.Key{changed, flapping, service}, result.Repaired()); diff != "" {
		t.Errorf("repaired (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]object.Key{changed, service}, result.Restored()); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
	if got := result.TakenOver(); got != 1 {
		t.Errorf("%d objects were taken over, want 1", got)
	}
	if diff := cmp.Diff(map[object.Change]int{object.Created: 1, object.Updated: 3, object.Unchanged: 1}, result.Counts()); diff != "" {
		t.Errorf("counts (-want +got):\n%s", diff)
	}
	if got := (installation.Result{}).Repaired(); got != nil {
		t.Errorf("nothing was changed, and %v is repaired", got)
	}
}
