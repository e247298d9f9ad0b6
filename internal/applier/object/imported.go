package object

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// A release of Helm can become an extension without a write to its objects. Its manifest is then
// recorded as Helm had it, without the labels of an extension. Until a new revision or `migrate helm
// finish` adds these labels, the annotations of Helm identify the owner of an object.

// IsLabelled reports whether a manifest of a release record has the owner label. It does not if it was
// imported from Helm.
func IsLabelled(manifest metav1.Object) bool { return manifest.GetLabels()[LabelOwnerName] != "" }

// OwnsAs is [Owner.Owns] for an object whose manifest in a release record may have been imported.
func (o Owner) OwnsAs(manifest, live metav1.Object) bool {
	return o.Owns(live) || o.ownsImported(manifest, live)
}

// HasAs is [Owner.Has] for an object whose manifest in a release record may have been imported.
func (o Owner) HasAs(manifest, live metav1.Object) bool {
	return o.Has(live) || o.ownsImported(manifest, live)
}

func (o Owner) ownsImported(manifest, live metav1.Object) bool {
	return !IsLabelled(manifest) && isUnclaimed(live) && o.isOfRelease(live)
}

// IsLeftByHelm reports whether a CRD is without any mark of an owner. Helm does not mark the CRDs that it
// creates from crds/, and does not have them in the manifest of a release.
func IsLeftByHelm(live metav1.Object) bool {
	return isUnclaimed(live) && live.GetAnnotations()[annotationReleaseName] == ""
}

// isUnclaimed reports whether no owner controls an object, and no label names an extension.
func isUnclaimed(live metav1.Object) bool {
	return metav1.GetControllerOfNoCopy(live) == nil && live.GetLabels()[LabelOwnerName] == ""
}

// ClaimPatch sets the labels of the extension and its owner reference on exactly the object that was
// read. An object that is kept gets the labels alone. The patch is empty if the extension has the object.
func (o Owner) ClaimPatch(live *unstructured.Unstructured) (Patch, error) {
	if o.Has(live) {
		return Patch{}, nil
	}
	metadata := map[string]any{"labels": map[string]any{LabelOwnerKind: OwnerKind, LabelOwnerName: o.Name}}
	if !IsKept(live) {
		metadata["ownerReferences"] = append(o.OtherReferences(live), *o.Reference())
	}
	return patchMetadata(live, metadata)
}
