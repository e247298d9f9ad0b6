package patches_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"reflect"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/jsonmergepatch"
	"k8s.io/apimachinery/pkg/util/strategicpatch"
	"k8s.io/client-go/dynamic"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// subject is an object on the cluster, and the manifest that it was made from.
type subject struct {
	*extension

	kind     schema.GroupVersionKind
	manifest *unstructured.Unstructured
	resource dynamic.ResourceInterface

	// first is the object as it was created.
	first *unstructured.Unstructured
}

// make creates an object of a manifest.
func (e *extension) make(t *testing.T, manifest *unstructured.Unstructured) *subject {
	t.Helper()
	s := e.subject(t, manifest)
	s.create(t)
	return s
}

// subject is the object of a manifest.
func (e *extension) subject(t *testing.T, manifest *unstructured.Unstructured) *subject {
	t.Helper()
	item, err := e.item(manifest)
	if err != nil {
		t.Fatal(err)
	}
	resource := dynamic.ResourceInterface(admin.Resource(item.Mapping.Resource))
	if item.Key.Namespace != "" {
		resource = admin.Resource(item.Mapping.Resource).Namespace(item.Key.Namespace)
	}
	return &subject{extension: e, kind: manifest.GroupVersionKind(), manifest: manifest, resource: resource}
}

func (s *subject) create(t *testing.T) {
	t.Helper()
	if err := s.apply(t.Context(), []*unstructured.Unstructured{s.manifest}, nil); err != nil {
		t.Fatal(err)
	}
	s.first = s.live(t)
}

func (s *subject) live(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	live, err := s.resource.Get(t.Context(), s.manifest.GetName(), metav1.GetOptions{})
	if err != nil {
		t.Fatal(err)
	}
	return live
}

// content is what of an object a manifest can set, in a form that is the same for the same.
func (s *subject) content(object *unstructured.Unstructured) map[string]any {
	object = object.DeepCopy()
	for _, field := range []string{"managedFields", "resourceVersion", "generation", "creationTimestamp", "uid"} {
		unstructured.RemoveNestedField(object.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(object.Object, "status")
	if !isBuiltin(s.kind) {
		return object.Object // where null and nothing are two
	}
	content, _ := storable(object.Object, typeOf(s.kind)).(map[string]any)
	return content
}

// isSame compares the content of two objects.
func (s *subject) isSame(a, b *unstructured.Unstructured) bool {
	return reflect.DeepEqual(s.content(a), s.content(b))
}

// put makes an object the live one, as an administrator. It may be refused.
func (s *subject) put(ctx context.Context, object *unstructured.Unstructured, dryRun ...string) (*unstructured.Unstructured, error) {
	object = object.DeepCopy()
	for {
		put, err := s.resource.Update(ctx, object, metav1.UpdateOptions{FieldManager: "somebody", DryRun: dryRun})
		if !apierrors.IsConflict(err) {
			return put, err
		}
		live, err := s.resource.Get(ctx, object.GetName(), metav1.GetOptions{})
		if err != nil {
			return nil, err
		}
		object.SetResourceVersion(live.GetResourceVersion())
	}
}

// reset makes the object again what it was first, anew if there is no way back.
func (s *subject) reset(t *testing.T) {
	t.Helper()
	live := s.live(t)
	if s.isSame(live, s.first) {
		return
	}
	first := s.first.DeepCopy()
	first.SetResourceVersion(live.GetResourceVersion())
	if _, err := s.put(t.Context(), first); err == nil {
		return
	}
	s.remove(t)
	s.isGone(t)
	s.create(t)
}

// remove deletes the object.
func (s *subject) remove(t *testing.T) {
	t.Helper()
	background := metav1.DeletePropagationBackground
	err := s.resource.Delete(t.Context(), s.manifest.GetName(), metav1.DeleteOptions{PropagationPolicy: &background})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// isGone waits until there is no such object.
func (s *subject) isGone(t *testing.T) {
	t.Helper()
	testkit.Eventually(t, patience, "an object to be gone", func(ctx context.Context) error {
		_, err := s.resource.Get(ctx, s.manifest.GetName(), metav1.GetOptions{})
		if apierrors.IsNotFound(err) {
			return nil
		}
		return errors.Join(errors.New("it is there"), err)
	})
}

// read is what the API server makes of a manifest in the place of the object: by
// replacing it, or by creating another one where that is refused.
func (s *subject) read(t *testing.T, manifest *unstructured.Unstructured) (map[string]any, error) {
	t.Helper()
	item, err := s.item(manifest)
	if err != nil {
		return nil, err
	}
	item.Object.SetResourceVersion(s.first.GetResourceVersion())
	replaced, err := s.put(t.Context(), item.Object, metav1.DryRunAll)
	if err == nil {
		return s.content(replaced), nil
	}
	item.Object.SetResourceVersion("")
	item.Object.SetName("other-" + item.Object.GetName())
	created, err := s.resource.Create(t.Context(), item.Object, metav1.CreateOptions{DryRun: []string{metav1.DryRunAll}})
	if err != nil {
		return nil, err
	}
	text, err := json.Marshal(created.Object)
	if err != nil {
		return nil, err
	}
	again := &unstructured.Unstructured{}
	err = again.UnmarshalJSON([]byte(strings.ReplaceAll(string(text), string(created.GetUID()), "uid")))
	return s.content(again), err
}

// plainPatch is what the library makes of the three, whatever comes of it. A null in a
// manifest says nothing, but would remove what is there, and so would an empty list that is
// not wanted any more.
func (s *subject) plainPatch(before, wanted, live *unstructured.Unstructured) (types.PatchType, []byte, error) {
	t := typeOf(s.kind)
	var texts [3][]byte
	for i, object := range []any{storable(withoutNulls(before.Object, t), t), withoutNulls(wanted.Object, t), live.Object} {
		text, err := json.Marshal(object)
		if err != nil {
			return "", nil, err
		}
		texts[i] = text
	}
	if !isBuiltin(s.kind) {
		patch, err := jsonmergepatch.CreateThreeWayJSONMergePatch(texts[0], texts[1], texts[2])
		return types.MergePatchType, patch, err
	}
	lookup := strategicpatch.PatchMetaFromStruct{T: typeOf(s.kind)}
	patch, err := strategicpatch.CreateThreeWayMergePatch(texts[0], texts[1], texts[2], lookup, true)
	return types.StrategicMergePatchType, patch, err
}

// patched is what the API server would store after the plain patch.
func (s *subject) patched(ctx context.Context, before, wanted, live *unstructured.Unstructured) (*unstructured.Unstructured, error) {
	kind, patch, err := s.plainPatch(before, wanted, live)
	if err != nil {
		return nil, err
	}
	if string(patch) == "{}" {
		return live, nil
	}
	return s.tryPatch(ctx, kind, patch)
}

// tryPatch sends a patch in a dry run.
func (s *subject) tryPatch(ctx context.Context, kind types.PatchType, patch []byte) (*unstructured.Unstructured, error) {
	options := metav1.PatchOptions{FieldManager: object.FieldManager, DryRun: []string{metav1.DryRunAll}}
	result, err := s.resource.Patch(ctx, s.manifest.GetName(), kind, patch, options)
	if err != nil {
		return nil, fmt.Errorf("%s: %w", patch, err)
	}
	return result, nil
}
