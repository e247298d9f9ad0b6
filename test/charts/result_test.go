package charts_test

import (
	"cmp"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// result contains the objects and the hooks of a rendered chart, or a refusal.
type result struct {
	objects []*unstructured.Unstructured

	// hooks run at one event at least. order has the hooks of each event in the order in which they run.
	hooks []hookOf
	order map[string][]*unstructured.Unstructured

	refusal error
}

// hookOf is a hook, with its events and delete policies in order.
type hookOf struct {
	object           *unstructured.Unstructured
	events, policies []string
	weight           int
}

// runEvents returns the events at which hooks run without a rollback.
func runEvents() []string {
	return []string{"pre-install", "post-install", "pre-upgrade", "post-upgrade", "pre-delete", "post-delete", "test"}
}

// key identifies an object in a cluster.
func key(object *unstructured.Unstructured) string {
	return object.GetAPIVersion() + " " + object.GetKind() + " " + object.GetNamespace() + "/" + object.GetName()
}

// place sets the namespaces of objects, as clients do: both Helm and the controller learn the scopes of
// kinds from the cluster.
func (r result) place(namespace string) {
	scoped := clusterScoped()
	for _, object := range r.objects {
		if object.GetKind() != "CustomResourceDefinition" {
			continue
		}
		group, _, _ := unstructured.NestedString(object.Object, "spec", "group")
		kind, _, _ := unstructured.NestedString(object.Object, "spec", "names", "kind")
		if scope, _, _ := unstructured.NestedString(object.Object, "spec", "scope"); scope == "Cluster" {
			scoped = append(scoped, schema.GroupKind{Group: group, Kind: kind})
		}
	}
	for _, object := range r.all() {
		switch {
		case slices.Contains(scoped, object.GroupVersionKind().GroupKind()):
			object.SetNamespace("")
		default:
			object.SetNamespace(cmp.Or(object.GetNamespace(), namespace))
		}
	}
}

// all returns the objects, and those of hooks.
func (r result) all() []*unstructured.Unstructured {
	all := slices.Clone(r.objects)
	for _, hook := range r.hooks {
		all = append(all, hook.object)
	}
	return all
}

// clusterScoped returns the kinds of Kubernetes that live in no namespace.
func clusterScoped() []schema.GroupKind {
	var kinds []schema.GroupKind
	for group, names := range map[string][]string{
		"":                             {"Namespace", "Node", "PersistentVolume"},
		"admissionregistration.k8s.io": {"MutatingWebhookConfiguration", "ValidatingWebhookConfiguration", "ValidatingAdmissionPolicy", "ValidatingAdmissionPolicyBinding"},
		"apiextensions.k8s.io":         {"CustomResourceDefinition"},
		"apiregistration.k8s.io":       {"APIService"},
		"flowcontrol.apiserver.k8s.io": {"FlowSchema", "PriorityLevelConfiguration"},
		"networking.k8s.io":            {"IngressClass"},
		"node.k8s.io":                  {"RuntimeClass"},
		"policy":                       {"PodSecurityPolicy"},
		"rbac.authorization.k8s.io":    {"ClusterRole", "ClusterRoleBinding"},
		"scheduling.k8s.io":            {"PriorityClass"},
		"storage.k8s.io":               {"CSIDriver", "StorageClass"},
	} {
		for _, name := range names {
			kinds = append(kinds, schema.GroupKind{Group: group, Kind: name})
		}
	}
	return kinds
}

// copied returns a copy that can be changed, without the order of hooks.
func (r result) copied() result {
	made := result{refusal: r.refusal}
	for _, object := range r.objects {
		made.objects = append(made.objects, object.DeepCopy())
	}
	for _, one := range r.hooks {
		one.object = one.object.DeepCopy()
		made.hooks = append(made.hooks, one)
	}
	return made
}
