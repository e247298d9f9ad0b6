package classic

import (
	"maps"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Labels and annotations of classic OLM, besides those by which package object knows whose an
// object is.
const (
	labelRightsHash  = "olm.permissions.hash"
	labelSpecHash    = "olm.deployment-spec-hash"
	labelWebhookName = "olm.webhook-description-generate-name"
	labelWebhookHash = "olm.webhook-description-hash"

	// prefixAggregate begins the label by which OperatorGroups collect the rights to an API.
	prefixAggregate = "olm.opgroup.permissions/aggregate-to-"
	// prefixAlongside begins the annotation of definitions that names a ClusterServiceVersion.
	prefixAlongside = "operatorframework.io/installed-alongside-"

	// annotationGenerated says that classic OLM has made a Subscription, as a dependency.
	annotationGenerated = "olm.generated-by"
	// annotationProperties has the properties of the bundle of a ClusterServiceVersion.
	annotationProperties = "operatorframework.io/properties"
	// annotationImageTemplate makes the image of a catalog depend on the version of the cluster.
	annotationImageTemplate = "olm.catalogImageTemplate"
)

// Kinds that are told apart here.
const (
	kindRole               = "Role"
	kindRoleBinding        = "RoleBinding"
	kindClusterRole        = "ClusterRole"
	kindClusterRoleBinding = "ClusterRoleBinding"
	kindMutating           = "MutatingWebhookConfiguration"
	kindValidating         = "ValidatingWebhookConfiguration"
	// kindBundleSecret is what InstallPlans call a Secret that comes with a bundle, in whatever
	// group the bundle has it.
	kindBundleSecret = "BundleSecret"
)

// LabelMarks are the labels of classic OLM on an object, sorted: an object that stays loses them
// when everything else is done. With them it would go with a ClusterServiceVersion of the same
// name that somebody installs and deletes later.
func LabelMarks(meta *metav1.ObjectMeta) []string {
	marks := []string{
		object.LabelClassicManaged, object.LabelClassicOwner, object.LabelClassicOwnerNamespace, object.LabelClassicOwnerKind,
		labelRightsHash, labelSpecHash, labelWebhookName, labelWebhookHash,
	}
	return slices.Sorted(func(yield func(string) bool) {
		for label := range meta.Labels {
			isMark := slices.Contains(marks, label) || strings.HasPrefix(label, object.PrefixClassicComponent)
			if isMark && !yield(label) {
				return
			}
		}
	})
}

// AnnotationMarks are the annotations of classic OLM on an object, sorted, which go with
// [LabelMarks].
func AnnotationMarks(meta *metav1.ObjectMeta) []string {
	var found []string
	for _, name := range slices.Sorted(maps.Keys(meta.Annotations)) {
		if strings.HasPrefix(name, prefixAlongside) {
			found = append(found, name)
		}
	}
	return found
}

// FinalizerMarks are the labels without which the finalizer of a ClusterServiceVersion does not find
// an object in no namespace.
func FinalizerMarks(meta *metav1.ObjectMeta) []string {
	var found []string
	for _, label := range []string{object.LabelClassicOwnerKind, object.LabelClassicOwnerNamespace} {
		if _, is := meta.Labels[label]; is {
			found = append(found, label)
		}
	}
	return found
}

// NamesOwner says that the labels of an object name the ClusterServiceVersion that it is of.
func NamesOwner(meta *metav1.ObjectMeta) bool { return meta.Labels[object.LabelClassicOwner] != "" }

// IsMarked says that classic OLM has to do with an object, whatever operator it is of.
func IsMarked(meta *metav1.ObjectMeta) bool {
	return len(LabelMarks(meta)) > 0 || len(AnnotationMarks(meta)) > 0 || slices.ContainsFunc(meta.OwnerReferences, isManagement)
}

// isManagement says that an owner is of a kind by which classic OLM is told what to do.
func isManagement(owner metav1.OwnerReference) bool {
	group, _, _ := strings.Cut(owner.APIVersion, "/")
	return group == object.ClassicGroup
}

// hasMarked says that the marks of an object are those of the operator, which is installed.
func (o *Operator) hasMarked(one Object) bool {
	if one.Key.Group == object.ClassicGroup {
		return false
	}
	labels := one.Meta.Labels
	if _, isComponent := labels[o.ComponentLabel()]; isComponent {
		return true
	}
	// The right to a certificate that has outlived an earlier ClusterServiceVersion has nothing but its name.
	if o.isOwnerIn(labels) || one.Key.Namespace == o.CSV.Namespace && o.isOfServing(one) {
		return true
	}
	return slices.ContainsFunc(one.Meta.OwnerReferences, func(owner metav1.OwnerReference) bool {
		isCondition := o.Condition != nil && owner.UID == o.Condition.UID
		return owner.UID == o.CSV.UID || isCondition
	})
}

// isOwnerIn says that the labels of an owner name the operator. A copy of a Role names the namespace
// that it is in for that of its owner, and the other one in a label of copies. What an InstallPlan
// has made names no namespace.
func (o *Operator) isOwnerIn(labels map[string]string) bool {
	if labels[object.LabelClassicOwner] != o.CSV.Name {
		return false
	}
	if kind := labels[object.LabelClassicOwnerKind]; kind != "" && kind != operatorsv1alpha1.ClusterServiceVersionKind {
		return false
	}
	from := labels[operatorsv1alpha1.CopiedLabelKey]
	if from == "" {
		from = labels[object.LabelClassicOwnerNamespace]
	}
	return from == "" || from == o.CSV.Namespace
}

// MarksOfOthers are the labels that name another operator, sorted. The controller leaves what has one to that operator,
// whatever else the object says: [object.Predecessor.Had].
func (o *Operator) MarksOfOthers(labels map[string]string) []string {
	var found []string
	for _, label := range slices.Sorted(maps.Keys(labels)) {
		isOthersComponent := strings.HasPrefix(label, object.PrefixClassicComponent) && label != o.ComponentLabel()
		if isOthersComponent || label == object.LabelClassicOwner && labels[label] != "" && !o.isOwnerIn(labels) {
			found = append(found, label)
		}
	}
	return found
}
