package bundle

import (
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// renderPlain returns the objects of a plain bundle as they are. One that names
// no namespace but needs one gets the install namespace, as far as its kind is
// known here; whoever applies the rest learns from the cluster.
func renderPlain(b *Bundle, namespace string) ([]*unstructured.Unstructured, error) {
	kinds := namespacedKinds(b)
	var objects objectSet
	for i := range b.Others {
		object := b.Others[i].DeepCopy()
		key := b.keyOf(object)
		if kinds[key.GroupKind] && object.GetNamespace() == "" {
			object.SetNamespace(namespace)
		}
		objects.add(source{object: object, file: b.files[key]})
	}
	return objects.sorted()
}

// namespacedKinds are those of Kubernetes that live in a namespace, and those
// that the bundle itself defines so.
func namespacedKinds(b *Bundle) map[schema.GroupKind]bool {
	kinds := map[schema.GroupKind]bool{}
	for group, names := range map[string][]string{
		groupCore: {
			"ConfigMap", "Endpoints", "LimitRange", "PersistentVolumeClaim", "Pod", "PodTemplate",
			"ReplicationController", "ResourceQuota", "Secret", kindService, kindServiceAccount,
		},
		groupApps:             {"ControllerRevision", "DaemonSet", kindDeployment, "ReplicaSet", "StatefulSet"},
		groupRBAC:             {kindRole, kindRoleBinding},
		"autoscaling":         {"HorizontalPodAutoscaler"},
		"batch":               {"CronJob", "Job"},
		"coordination.k8s.io": {"Lease"},
		"discovery.k8s.io":    {"EndpointSlice"},
		"networking.k8s.io":   {"Ingress", "NetworkPolicy"},
		"policy":              {"PodDisruptionBudget"},
		"storage.k8s.io":      {"CSIStorageCapacity"},
	} {
		for _, name := range names {
			kinds[schema.GroupKind{Group: group, Kind: name}] = true
		}
	}
	for i := range b.Others {
		object := b.Others[i].Object
		if b.keyOf(&b.Others[i]).GroupKind != crdKey("").GroupKind {
			continue
		}
		group, _, _ := unstructured.NestedString(object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object, "spec", "names", "kind")
		scope, _, _ := unstructured.NestedString(object, "spec", "scope")
		kinds[schema.GroupKind{Group: group, Kind: kind}] = scope == "Namespaced"
	}
	return kinds
}
