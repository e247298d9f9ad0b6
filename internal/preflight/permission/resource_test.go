package permission

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// What a cluster serves is called as it says, and all else as one would guess.
func TestServedOrGuessed(t *testing.T) {
	t.Parallel()
	version := schema.GroupVersion{Group: "farm.test", Version: "v1"}
	served := meta.NewDefaultRESTMapper(nil)
	served.AddSpecific(version.WithKind("Ox"), version.WithResource("oxen"), version.WithResource("ox"), meta.RESTScopeRoot)
	mapper := ServedOrGuessed(served)
	for kind, want := range map[string]Resource{
		"Ox":  {GroupResource: schema.GroupResource{Group: "farm.test", Resource: "oxen"}},
		"Cow": {GroupResource: schema.GroupResource{Group: "farm.test", Resource: "cows"}, Namespaced: true},
	} {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(version.WithKind(kind))
		object.SetNamespace("meadow")
		got, err := mapper(object)
		if err != nil {
			t.Error(err)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("%s (-want +got)\n%s", kind, diff)
		}
	}
}
