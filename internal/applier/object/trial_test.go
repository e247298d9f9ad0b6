package object

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
)

func TestPatchesAreApplied(t *testing.T) {
	t.Parallel()
	pod := func(containers ...any) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": "p"}, "spec": map[string]any{"containers": containers},
		}}
	}
	container := func(name, image string) any { return map[string]any{"name": name, "image": image} }
	live := pod(container("a", "a:1"), container("b", "b:1"))
	for name, test := range map[string]struct {
		patch Patch
		want  *unstructured.Unstructured
	}{
		"lists merge": {
			Patch{Kind: types.StrategicMergePatchType, Data: []byte(`{"spec":{"containers":[{"name":"b","image":"b:2"}]}}`)},
			pod(container("a", "a:1"), container("b", "b:2")),
		},
		"lists are replaced": {
			Patch{Kind: types.MergePatchType, Data: []byte(`{"spec":{"containers":[{"name":"b","image":"b:2"}]}}`)},
			pod(container("b", "b:2")),
		},
		"no patch": {Patch{Kind: types.MergePatchType, Data: []byte(`{`)}, nil},
	} {
		got, err := test.patch.AppliedTo(live)
		if (err != nil) != (test.want == nil) {
			t.Errorf("%s: error %v", name, err)
		}
		if test.want != nil {
			if diff := cmp.Diff(test.want.Object, got.Object); diff != "" {
				t.Errorf("%s (-want +got)\n%s", name, diff)
			}
		}
	}
}
