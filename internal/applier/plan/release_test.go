package plan

import (
	"context"
	"errors"
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
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
				stored = append(stored, tc.live.DeepCopy()) // the client changes it
			}
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
			planner := NewPlanner(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), stored...), mapper, owner,
				func(context.Context, object.Owner) error { return nil })
			executor := drop(t, planner, tc.manifest)
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

// TestHelmCRDsAreAdopted upgrades an imported chart that has CRDs in crds/, which Helm does not mark.
func TestHelmCRDsAreAdopted(t *testing.T) {
	t.Parallel()
	const (
		crd     = `{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, metadata: {name: %s}, spec: {group: p, names: {kind: Thing}}}`
		ofChart = "things.p"
		ofOther = "gateways.p"
	)
	owner := object.Owner{Name: "x", UID: "uid", Namespace: "ns"}
	live := func(name string) *unstructured.Unstructured { return stepOf(t, fmt.Sprintf(crd, name)).Object }
	imported := stepOf(t, `{apiVersion: v1, kind: ConfigMap, metadata: {name: c, namespace: ns}}`).Object
	for name, tc := range map[string]struct {
		reason   string
		live     *unstructured.Unstructured
		before   []*unstructured.Unstructured
		conflict bool
	}{
		"of the imported chart":               {live: live(ofChart), before: []*unstructured.Unstructured{imported}},
		"after the other objects have labels": {live: live(ofChart), before: []*unstructured.Unstructured{owner.Own(imported)}},
		"after a failed upgrade":              {reason: "it has the CRD, and may not have written it", live: live(ofChart), before: []*unstructured.Unstructured{imported, owner.Own(live(ofChart))}},
		"of the new version alone":            {reason: "somebody else may have created it", live: live(ofOther), before: []*unstructured.Unstructured{imported}, conflict: true},
		"of another release":                  {live: annotated(live(ofChart), "meta.helm.sh/release-name", "y"), before: []*unstructured.Unstructured{imported}, conflict: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ConfigMap"), meta.RESTScopeNamespace)
			mapper.Add(tc.live.GroupVersionKind(), meta.RESTScopeRoot)
			planner := NewPlanner(dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), tc.live.DeepCopy()), mapper, owner, nil)
			wanted := owner.Own(live(tc.live.GetName()))
			planned, err := planner.Plan([]*unstructured.Unstructured{wanted}, tc.before, []string{ofChart})
			if err != nil {
				t.Fatal(err)
			}
			err = planner.Inspect(t.Context(), planned)
			if _, isConflict := errors.AsType[*object.ConflictError](err); isConflict != tc.conflict || err != nil != tc.conflict {
				t.Errorf("got %v, want a conflict: %t: %s", err, tc.conflict, tc.reason)
			}
		})
	}
}

func annotated(object *unstructured.Unstructured, key, value string) *unstructured.Unstructured {
	object.SetAnnotations(map[string]string{key: value})
	return object
}

// TestHomeIsReleased is F24: a Namespace, and the ServiceAccount of the extension, are released where a new version drops
// them, and adopted again where a later one has them.
func TestHomeIsReleased(t *testing.T) {
	t.Parallel()
	owner := object.Owner{Name: "x", UID: "uid", Namespace: "ns", ServiceAccount: "installer"}
	const claim = "{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: data, namespace: ns}}"
	for name, tc := range map[string]struct {
		manifest string
		adopts   string
		want     object.Change
	}{
		"F28: the claim of an extension that is adopted": {manifest: claim, adopts: "old", want: object.Released},
		"a claim":              {manifest: claim, want: object.Deleted},
		"own namespace":        {manifest: "{apiVersion: v1, kind: Namespace, metadata: {name: ns}}", want: object.Released},
		"another namespace":    {manifest: "{apiVersion: v1, kind: Namespace, metadata: {name: other}}", want: object.Released},
		"own ServiceAccount":   {manifest: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: installer, namespace: ns}}", want: object.Released},
		"other ServiceAccount": {manifest: "{apiVersion: v1, kind: ServiceAccount, metadata: {name: operator, namespace: ns}}", want: object.Deleted},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner := owner
			owner.Adopts = tc.adopts
			manifest := owner.Own(stepOf(t, tc.manifest).Object)
			live := manifest.DeepCopy()
			owner.Stamp(live)
			mapper := meta.NewDefaultRESTMapper(nil)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("Namespace"), meta.RESTScopeRoot)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("ServiceAccount"), meta.RESTScopeNamespace)
			mapper.Add(corev1.SchemeGroupVersion.WithKind("PersistentVolumeClaim"), meta.RESTScopeNamespace)
			client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), live)
			planner := NewPlanner(client, mapper, owner, func(context.Context, object.Owner) error { return nil })
			executor := drop(t, planner, manifest)
			key := object.KeyOf(manifest)
			if diff := cmp.Diff(map[object.Key]object.Change{key: tc.want}, executor.Progress.Changes); diff != "" {
				t.Errorf("changes (-want +got):\n%s", diff)
			}
			items, err := object.Items(mapper, owner, []*unstructured.Unstructured{manifest})
			if err != nil {
				t.Fatal(err)
			}
			found, err := resourceOf(client, items[0]).Get(t.Context(), manifest.GetName(), metav1.GetOptions{})
			if tc.want == object.Deleted {
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			if owner.Has(found) || !owner.Owns(found) {
				t.Errorf("of the extension: %t, may be adopted: %t", owner.Has(found), owner.Owns(found))
			}
		})
	}
}

// drop executes an upgrade that drops an object.
func drop(t *testing.T, planner *Planner, manifest *unstructured.Unstructured) *Executor {
	t.Helper()
	planned, err := planner.Plan(nil, []*unstructured.Unstructured{manifest}, nil)
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
	return executor
}

// TestDeletedMeanwhile: an upgrade creates an object that was deleted after it was read. If it failed instead, a repair would
// restore the earlier version, although the status asks users to delete an object whose fields cannot be changed.
func TestDeletedMeanwhile(t *testing.T) {
	t.Parallel()
	owner := object.Owner{Name: "x", UID: "uid", Namespace: "ns"}
	before := owner.Own(stepOf(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {replicas: 1}}`).Object)
	wanted := owner.Own(stepOf(t, `{apiVersion: apps/v1, kind: Deployment, metadata: {name: d, namespace: ns}, spec: {replicas: 2}}`).Object)
	live := before.DeepCopy()
	owner.Stamp(live)
	client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), live)
	planner := NewPlanner(client, installedMapper(), owner, func(context.Context, object.Owner) error { return nil })
	planned, err := planner.Plan([]*unstructured.Unstructured{wanted}, []*unstructured.Unstructured{before}, nil)
	if err != nil {
		t.Fatal(err)
	}
	if err := planner.Inspect(t.Context(), planned); err != nil {
		t.Fatal(err)
	}
	if err := resourceOf(client, planned.Steps[0].Item).Delete(t.Context(), "d", metav1.DeleteOptions{}); err != nil {
		t.Fatal(err)
	}
	if err := planner.DryRun(t.Context(), planned); err != nil {
		t.Errorf("dry run: %v", err)
	}
}

// TestGrownClaims is F12: a claim that a user has enlarged keeps its size, and is enlarged to a larger one.
func TestGrownClaims(t *testing.T) {
	t.Parallel()
	claim := func(storage string) *unstructured.Unstructured {
		return stepOf(t, `{apiVersion: v1, kind: PersistentVolumeClaim, metadata: {name: c, namespace: ns}, spec: {resources: {requests: {storage: "`+storage+`"}}}}`).Object
	}
	for name, tc := range map[string]struct{ wanted, live, patch string }{
		"F12: enlarged by a user":            {wanted: "1Gi", live: "2Gi", patch: "{}"},
		"F12: the same in another unit":      {wanted: "1024Mi", live: "1Gi", patch: "{}"},
		"F12: the new version wants more":    {wanted: "3Gi", live: "2Gi", patch: `{"spec":{"resources":{"requests":{"storage":"3Gi"}}}}`},
		"F12: what cannot be read is wanted": {wanted: "x", live: "2Gi", patch: `{"spec":{"resources":{"requests":{"storage":"x"}}}}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := claim(tc.live)
			s := Step{Item: object.Item{Key: object.KeyOf(live), Object: claim(tc.wanted)}, before: claim("1Gi"), Live: live, state: read}
			patch, err := s.threeWay().Patch()
			if err != nil {
				t.Fatal(err)
			}
			got := string(patch.Data)
			if patch.IsEmpty() {
				got = "{}"
			}
			if got != tc.patch {
				t.Errorf("the patch is %s, want %s", got, tc.patch)
			}
		})
	}
}
