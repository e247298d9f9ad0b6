package plan

import (
	"context"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	dynamicfake "k8s.io/client-go/dynamic/fake"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

const importedAndKept = `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns, annotations: {helm.sh/resource-policy: keep}}}`

// TestKeptObjectsAreReleased drops an object that is kept from a revision, and the revision before deletes its extension.
// Both report it as released, whether or not there is a label to remove.
func TestKeptObjectsAreReleased(t *testing.T) {
	t.Parallel()
	owner := object.Owner{Name: "x", UID: "uid", Namespace: "ns"}
	imported := stepOf(t, importedAndKept).Object
	installed := owner.Own(imported)
	stamped := func(manifest *unstructured.Unstructured) *unstructured.Unstructured {
		live := manifest.DeepCopy()
		owner.Stamp(live)
		return live
	}
	for name, tc := range map[string]struct {
		manifest, live *unstructured.Unstructured
		want           map[object.Key]object.Change
		began          bool
	}{
		"installed":        {manifest: installed, live: stamped(installed), want: map[object.Key]object.Change{object.KeyOf(imported): object.Released}, began: true},
		"released before":  {manifest: installed, live: stamped(imported), want: map[object.Key]object.Change{object.KeyOf(imported): object.Released}},
		"imported":         {manifest: imported, live: stamped(imported), want: map[object.Key]object.Change{object.KeyOf(imported): object.Released}},
		"of somebody else": {manifest: installed, live: imported, want: map[object.Key]object.Change{}},
		"gone":             {manifest: installed, want: map[object.Key]object.Change{}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var stored []runtime.Object
			if tc.live != nil {
				stored = append(stored, tc.live)
			}
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
			planner := NewPlanner(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), stored...), mapper, owner,
				func(context.Context, object.Owner) error { return nil })
			planned, err := planner.Plan(nil, []*unstructured.Unstructured{tc.manifest})
			if err != nil {
				t.Fatal(err)
			}
			if err := planner.Inspect(t.Context(), planned); err != nil {
				t.Fatal(err)
			}
			executor := planner.Executor()
			if err := executor.Execute(t.Context(), planned); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, executor.Progress.Changes); diff != "" || executor.Progress.Began != tc.began {
				t.Errorf("began: %t, changes (-want +got):\n%s", executor.Progress.Began, diff)
			}
			items, err := object.Items(mapper, owner, []*unstructured.Unstructured{tc.manifest})
			if err != nil {
				t.Fatal(err)
			}
			if kept, err := planner.Release(t.Context(), items); err != nil || len(kept) != len(tc.want) {
				t.Errorf("at a deletion %v (%v) are released", kept, err)
			}
		})
	}
}
