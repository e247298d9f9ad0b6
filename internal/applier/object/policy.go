package object

import (
	"encoding/json"
	"fmt"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/types"
)

// AnnotationPolicy is the annotation by which a chart excludes an object from deletion. It is ignored unless
// its value is policyKeep.
const (
	AnnotationPolicy = "helm.sh/resource-policy"
	policyKeep       = "keep"
)

// IsKept reports whether an object has the annotation helm.sh/resource-policy: keep. It is then not
// deleted with its extension, nor when a new revision drops it. As in Helm, case and surrounding spaces
// of the value are ignored.
func IsKept(object metav1.Object) bool {
	return strings.ToLower(strings.TrimSpace(object.GetAnnotations()[AnnotationPolicy])) == policyKeep
}

// setOwnerReferences sets the owner references of a manifest. Kept objects have none, because the garbage
// collector would delete them with their owner. Imported objects have none until a new revision writes them.
func (o Owner) setOwnerReferences(manifest *unstructured.Unstructured) {
	if IsKept(manifest) || !IsLabelled(manifest) {
		manifest.SetOwnerReferences(nil)
		return
	}
	manifest.SetOwnerReferences([]metav1.OwnerReference{*o.Reference()})
}

// Has reports whether an object belongs to the extension already: the extension is one of its owners, or the
// object is kept and has the labels and annotations of the extension. [Owner.Owns] is also true for objects
// that the extension may adopt.
func (o Owner) Has(live metav1.Object) bool {
	return o.IsOwnerOf(live) || IsKept(live) && live.GetLabels()[LabelOwnerName] == o.Name && o.Owns(live)
}

// StaysAsHook reports whether the object of a hook is not deleted together with the extension: because of the annotation
// that keeps it, or because it contains data.
func StaysAsHook(manifest *unstructured.Unstructured) bool {
	return IsKept(manifest) || ContainsData(manifest)
}

// ContainsData reports whether an object contains data that nothing restores: a PersistentVolumeClaim, or a Namespace with
// the objects of others.
func ContainsData(object *unstructured.Unstructured) bool {
	kind := object.GroupVersionKind().GroupKind()
	return kind == ClaimKind || kind == NamespaceKind
}

// IsHome reports whether an object is never deleted when a revision drops it: a Namespace, which would be deleted with
// all objects of others, or the ServiceAccount of the extension, without which it could do nothing more. A
// PersistentVolumeClaim is not deleted either as long as the extension adopts the content of another one, whose data it may be.
func (o Owner) IsHome(key Key) bool {
	switch key.GroupKind {
	case NamespaceKind:
		return true
	case ClaimKind:
		return o.Adopts != ""
	case schema.GroupKind{Kind: "ServiceAccount"}:
		return key.Namespace == o.Namespace && key.Name == o.ServiceAccount
	}
	return false
}

// isHomeOf is [Owner.IsHome] for an object whose kind is known.
func (o Owner) isHomeOf(live metav1.Object) bool {
	typed, is := live.(runtime.Object)
	return is && o.IsHome(Key{
		GroupKind: typed.GetObjectKind().GroupVersionKind().GroupKind(), Namespace: live.GetNamespace(), Name: live.GetName(),
	})
}

// hasReleased reports whether an object that is kept was released by an extension of this name and
// namespace, or by the Helm release of that name: Helm's annotations name it, and no extension does.
func (o Owner) hasReleased(live metav1.Object) bool {
	return (IsKept(live) || o.isHomeOf(live)) && live.GetLabels()[LabelOwnerName] == "" && o.isOfRelease(live)
}

// isOfRelease reports whether Helm's annotations name the release of the extension.
func (o Owner) isOfRelease(live metav1.Object) bool {
	annotations := live.GetAnnotations()
	return annotations[annotationReleaseName] == ReleaseName(o.Name) && annotations[annotationReleaseNamespace] == o.Namespace
}

// ReleasePatch returns a patch that removes the labels and owner reference of the extension, or of the extension whose
// content it adopts. The patch is empty if there are none, and the API server refuses it if the object was changed since
// it was read. Helm's annotations are kept: an extension of the same name and namespace adopts the object by them if
// it installs it again.
func (o Owner) ReleasePatch(live *unstructured.Unstructured) (Patch, error) {
	metadata := map[string]any{}
	if live.GetLabels()[LabelOwnerName] == o.Name || o.inherits(live) {
		metadata["labels"] = map[string]any{LabelOwnerKind: nil, LabelOwnerName: nil}
	}
	if o.IsOwnerOf(live) {
		metadata["ownerReferences"] = o.OtherReferences(live)
	}
	if len(metadata) == 0 {
		return Patch{}, nil
	}
	return patchMetadata(live, metadata)
}

// OwnersPatch replaces the owners of exactly the object that was read.
func OwnersPatch(live *unstructured.Unstructured, owners []metav1.OwnerReference) (Patch, error) {
	return patchMetadata(live, map[string]any{"ownerReferences": owners})
}

func patchMetadata(live *unstructured.Unstructured, metadata map[string]any) (Patch, error) {
	metadata["uid"], metadata["resourceVersion"] = live.GetUID(), live.GetResourceVersion()
	data, err := json.Marshal(map[string]any{"metadata": metadata})
	if err != nil {
		return Patch{}, fmt.Errorf("encoding a patch of metadata: %w", err)
	}
	return Patch{Kind: types.MergePatchType, Data: data}, nil
}
