package applier

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Labels and annotations on every object of an extension. They are part of the
// contract with the reference implementation.
const (
	LabelOwnerKind = "olm.operatorframework.io/owner-kind"
	LabelOwnerName = "olm.operatorframework.io/owner-name"

	ownerKind = "ClusterExtension"

	labelManagedBy             = "app.kubernetes.io/managed-by"
	managedByHelm              = "Helm"
	annotationReleaseName      = "meta.helm.sh/release-name"
	annotationReleaseNamespace = "meta.helm.sh/release-namespace"
)

// ownerGroupVersion is the API version under which owners are referenced.
var ownerGroupVersion = schema.GroupVersion{Group: "olm.operatorframework.io", Version: "v1"}

var ownerResource = ownerGroupVersion.WithResource("clusterextensions")

// item is an object of a release together with what the cluster says about its
// kind.
type item struct {
	key     object.Key
	mapping *meta.RESTMapping
	object  *unstructured.Unstructured
}

// itemsOf maps every object to its resource, and puts namespaced objects that
// name no namespace into that of the release. The error names every kind that
// the cluster does not serve.
func itemsOf(mapper meta.RESTMapper, release Extension, objects []*unstructured.Unstructured) ([]item, error) {
	items := make([]item, 0, len(objects))
	unknown := map[schema.GroupVersionKind]struct{}{}
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			unknown[gvk] = struct{}{}
			continue
		}
		if err != nil {
			return nil, fmt.Errorf("looking up the resource of %s: %w", gvk, err)
		}
		items = append(items, newItem(mapping, release, object))
	}
	if len(unknown) > 0 {
		return nil, newUnknownKindsError(unknown)
	}
	slices.SortFunc(items, func(a, b item) int {
		return cmp.Or(cmp.Compare(waveOf(a.key.GroupKind), waveOf(b.key.GroupKind)), a.key.Compare(b.key))
	})
	return items, nil
}

func newItem(mapping *meta.RESTMapping, release Extension, obj *unstructured.Unstructured) item {
	obj = obj.DeepCopy()
	// A manifest has the owner of its time. An earlier extension of the same name
	// would have the garbage collector delete the object.
	obj.SetOwnerReferences([]metav1.OwnerReference{*release.reference()})
	// Neither is the revision's to say, though some manifests have them.
	unstructured.RemoveNestedField(obj.Object, "metadata", "creationTimestamp")
	unstructured.RemoveNestedField(obj.Object, "status")
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		obj.SetNamespace("")
	} else if obj.GetNamespace() == "" {
		obj.SetNamespace(release.Namespace)
	}
	return item{
		key: object.Key{
			GroupKind: mapping.GroupVersionKind.GroupKind(),
			Namespace: obj.GetNamespace(),
			Name:      obj.GetName(),
		},
		mapping: mapping,
		object:  obj,
	}
}

// own returns a copy of the object that carries the owner's labels and
// controller reference, which is how it is stored in the release.
func own(owner Extension, object *unstructured.Unstructured) *unstructured.Unstructured {
	owned := object.DeepCopy()
	owned.SetLabels(with(owned.GetLabels(), map[string]string{
		LabelOwnerKind: ownerKind,
		LabelOwnerName: owner.Name,
	}))
	owned.SetOwnerReferences([]metav1.OwnerReference{*owner.reference()})
	return owned
}

// stamp adds what Helm puts on the objects of a release when it writes them. A
// bundle that says itself what manages an object has the last word, as it had
// with the reference implementation after its first look.
func stamp(owner Extension, object *unstructured.Unstructured) {
	object.SetLabels(with(map[string]string{labelManagedBy: managedByHelm}, object.GetLabels()))
	object.SetAnnotations(with(object.GetAnnotations(), map[string]string{
		annotationReleaseName:      releaseName(owner.Name),
		annotationReleaseNamespace: owner.Namespace,
	}))
}

func with(values, added map[string]string) map[string]string {
	merged := make(map[string]string, len(values)+len(added))
	maps.Copy(merged, values)
	maps.Copy(merged, added)
	return merged
}

// waveOf is the position of a kind in the order of writing. Objects of one wave
// are written at the same time; a wave starts when the one before it is done.
// What others refer to comes first, webhooks come after what serves them.
func waveOf(kind schema.GroupKind) int {
	switch kind.Kind {
	case "PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange",
		"PodDisruptionBudget", "ServiceAccount", "Secret", "ConfigMap":
		return 0
	case "CustomResourceDefinition":
		return 1
	case "ClusterRole", "Role":
		return 2
	case "ClusterRoleBinding", "RoleBinding":
		return 3
	case "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod":
		return 5
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService":
		return 6
	default:
		return 4
	}
}
