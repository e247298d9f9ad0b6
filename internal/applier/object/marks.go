package object

import (
	"maps"
	"slices"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Labels and annotations on every object of an extension. They are part of the
// contract with the reference implementation.
const (
	LabelOwnerKind = "olm.operatorframework.io/owner-kind"
	LabelOwnerName = "olm.operatorframework.io/owner-name"

	// OwnerKind is the kind of all owners.
	OwnerKind = "ClusterExtension"

	labelManagedBy             = "app.kubernetes.io/managed-by"
	managedByHelm              = "Helm"
	annotationReleaseName      = "meta.helm.sh/release-name"
	annotationReleaseNamespace = "meta.helm.sh/release-namespace"
)

// ownerGroupVersion is the API version under which owners are referenced.
var ownerGroupVersion = schema.GroupVersion{Group: "olm.operatorframework.io", Version: "v1"}

// OwnerResource is where owners are read.
var OwnerResource = ownerGroupVersion.WithResource("clusterextensions")

// Own returns a copy of the object that carries the owner's labels and, unless the object is kept,
// its controller reference. It is stored in the release like that.
func (o Owner) Own(object *unstructured.Unstructured) *unstructured.Unstructured {
	owned := o.labelled(object)
	o.setOwnerReferences(owned)
	return owned
}

// OwnHook is [Owner.Own] for hooks. Helm leaves the objects of hooks at the uninstall. Here the garbage collector
// deletes them. The objects of [StaysAsHook] get no owner and stay.
func (o Owner) OwnHook(object *unstructured.Unstructured) *unstructured.Unstructured {
	owned := o.labelled(object)
	if StaysAsHook(object) {
		return owned
	}
	owned.SetOwnerReferences([]metav1.OwnerReference{*o.Reference()})
	return owned
}

func (o Owner) labelled(object *unstructured.Unstructured) *unstructured.Unstructured {
	labelled := object.DeepCopy()
	labelled.SetLabels(with(textsIn(labelled, "labels"), o.Labels()))
	return labelled
}

// Labels are those by which the objects of the owner are found.
func (o Owner) Labels() map[string]string {
	return map[string]string{LabelOwnerKind: OwnerKind, LabelOwnerName: o.Name}
}

// Stamp adds what Helm puts on the objects of a release when it writes them. A
// bundle that says itself what manages an object has the last word, as it had
// with the reference implementation after its first look.
func (o Owner) Stamp(object *unstructured.Unstructured) {
	object.SetLabels(with(map[string]string{labelManagedBy: managedByHelm}, textsIn(object, "labels")))
	object.SetAnnotations(with(textsIn(object, "annotations"), map[string]string{
		annotationReleaseName:      ReleaseName(o.Name),
		annotationReleaseNamespace: o.Namespace,
	}))
}

// MarksOf are the labels and annotations by which an object says that it is of an extension, as [Owner.Own] and
// [Owner.Stamp] write them: without an owner, the next extension of the name takes it for its own. There are none on
// what is of another one.
func MarksOf(live *metav1.ObjectMeta, extension string) (labels, annotations []string) {
	if live.Labels[LabelOwnerName] != extension {
		return nil, nil
	}
	labels = []string{LabelOwnerKind, LabelOwnerName}
	if live.Labels[labelManagedBy] == managedByHelm {
		labels = append(labels, labelManagedBy)
	}
	return labels, []string{annotationReleaseName, annotationReleaseNamespace}
}

// textsIn are the labels or the annotations of a manifest. One that is null is empty, as for
// the API server. There are none if another one is no text, which it refuses.
func textsIn(manifest *unstructured.Unstructured, field string) map[string]string {
	found, _, _ := unstructured.NestedFieldNoCopy(manifest.Object, "metadata", field)
	values, _ := found.(map[string]any)
	texts := make(map[string]string, len(values))
	for key, value := range values {
		text, isText := value.(string)
		if !isText && value != nil {
			return nil
		}
		texts[key] = text
	}
	return texts
}

func with(values, added map[string]string) map[string]string {
	merged := make(map[string]string, len(values)+len(added))
	maps.Copy(merged, values)
	maps.Copy(merged, added)
	return merged
}

// Owns reports whether an object belongs to the extension. There are four cases:
//   - The object has a controller: the uid in the reference counts, because every client can write labels
//     and annotations.
//   - The object has no controller, but the label and Helm's annotations of the extension: it is kept, or an
//     earlier extension of the name left it.
//   - The object has neither a controller nor the label, but Helm's annotations of the extension, and is
//     kept: it was released.
//   - The object has no controller, but the label and Helm's annotation of the extension that this one adopts.
func (o Owner) Owns(live metav1.Object) bool {
	if controller := metav1.GetControllerOfNoCopy(live); controller != nil {
		return controller.UID == o.UID
	}
	return live.GetLabels()[LabelOwnerName] == o.Name && o.isOfRelease(live) || o.hasReleased(live) || o.inherits(live)
}

// inherits reports whether an object without a controller is content of the extension that this one adopts.
func (o Owner) inherits(live metav1.Object) bool {
	labels := live.GetLabels()
	return o.Adopts != "" && labels[LabelOwnerKind] == OwnerKind && labels[LabelOwnerName] == o.Adopts &&
		live.GetAnnotations()[annotationReleaseName] == ReleaseName(o.Adopts)
}

// InheritedIn returns the recorded objects that may be of the extension which this one adopts: records of imported content
// do not name their extension.
func (o Owner) InheritedIn(recorded []*unstructured.Unstructured) []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(recorded), func(obj *unstructured.Unstructured) bool {
		return o.Adopts == "" || obj.GetLabels()[LabelOwnerName] == o.Name
	})
}
