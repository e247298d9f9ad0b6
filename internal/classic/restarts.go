package classic

import (
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Restarted are the Deployments of the operator whose pods are replaced when what an extension
// renders is applied, sorted. What classic OLM has set of a pod and the bundle does not have goes,
// so that a Deployment is spared only if nothing of it differs.
func (o *Operator) Restarted(rendered []*unstructured.Unstructured) []object.Key {
	var found []object.Key
	for _, wanted := range rendered {
		deployment := appsv1.Deployment{}
		kind := appsv1.SchemeGroupVersion.WithKind("Deployment")
		if wanted.GroupVersionKind() != kind || runtime.DefaultUnstructuredConverter.FromUnstructured(wanted.Object, &deployment) != nil {
			continue
		}
		for _, live := range o.Deployments {
			if live.Namespace == deployment.Namespace && live.Name == deployment.Name && restarts(&live.Spec.Template, &deployment.Spec.Template) {
				found = append(found, object.Key{GroupKind: kind.GroupKind(), Namespace: live.Namespace, Name: live.Name})
			}
		}
	}
	slices.SortFunc(found, object.Key.Compare)
	return found
}

// restarts says that pods of one template are not those of the other. What is not wanted
// explicitly is a default of the API server.
func restarts(live, wanted *corev1.PodTemplateSpec) bool {
	if !maps.Equal(live.Annotations, wanted.Annotations) || !maps.Equal(live.Labels, wanted.Labels) {
		return true
	}
	if len(live.Spec.Containers) != len(wanted.Spec.Containers) {
		return true
	}
	for i := range wanted.Spec.Containers {
		if len(live.Spec.Containers[i].Env) != len(wanted.Spec.Containers[i].Env) {
			return true
		}
	}
	return !equality.Semantic.DeepDerivative(wanted.Spec, live.Spec)
}
