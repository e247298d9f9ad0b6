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
	result := installation.Result{
		Changes: map[object.Key]object.Change{
			service: object.Created, changed: object.Updated, flapping: object.Updated, key("Secret", "a", "same"): object.Unchanged,
		},
		Flapping: []object.Flapping{{Object: flapping}},
	}
	if diff := cmp.Diff([]object.Key{changed, flapping, service}, result.Repaired()); diff != "" {
		t.Errorf("repaired (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]object.Key{changed, service}, result.Restored()); diff != "" {
		t.Errorf("restored (-want +got):\n%s", diff)
	}
	if got := (installation.Result{}).Repaired(); got != nil {
		t.Errorf("nothing was changed, and %v is repaired", got)
	}
}
