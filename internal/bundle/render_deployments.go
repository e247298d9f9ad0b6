package bundle

import (
	"maps"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	apivalidation "k8s.io/apimachinery/pkg/api/validation"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// targetNamespacesAnnotation is where an operator finds the namespaces that it
// should watch, comma-separated, empty for all of them.
const targetNamespacesAnnotation = "olm.targetNamespaces"

func (r *renderer) deployments() error {
	if err := r.config.checkSize(r.bundle); err != nil {
		return err
	}
	serving := r.servingDeployments()
	for _, declared := range r.bundle.deployments() {
		deployment := r.deployment(declared)
		if serving.Has(declared.Name) && r.certificates != nil {
			mountCertificate(&deployment.Spec.Template.Spec, certificateName(declared.Name))
		}
		// Before the configuration, which can so refer to the variable, or set another one.
		nameCondition(&deployment.Spec.Template.Spec, r.condition)
		r.config.apply(deployment)
		if template := &deployment.Spec.Template; refersTo(&template.Spec, operatorNamespaceAnnotation) {
			// Only there: a pod template that changes restarts the operator.
			metav1.SetMetaDataAnnotation(&template.ObjectMeta, operatorNamespaceAnnotation, r.namespace)
		}
		if err := r.add(deployment); err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) deployment(declared operatorsv1alpha1.StrategyDeploymentSpec) *appsv1.Deployment {
	deployment := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: kindDeployment},
		ObjectMeta: metav1.ObjectMeta{Name: declared.Name, Namespace: r.namespace, Labels: maps.Clone(declared.Label)},
	}
	declared.Spec.DeepCopyInto(&deployment.Spec)

	// Old replica sets cannot be rolled back to: the bundle would undo it.
	deployment.Spec.RevisionHistoryLimit = new(int32(1))

	deployment.Spec.Template.Annotations = podAnnotations(r.bundle.CSV.Annotations, declared, strings.Join(r.watched, ","))
	return deployment
}

// podAnnotations are those of the ClusterServiceVersion and of the template,
// which win. Where they are more than a pod can have, those that only a catalog
// needs are left out; where they are not, all stay, since pods that run have
// them.
func podAnnotations(csv map[string]string, declared operatorsv1alpha1.StrategyDeploymentSpec, watched string) map[string]string {
	annotations := maps.Clone(csv)
	if annotations == nil {
		annotations = map[string]string{}
	}
	template := declared.Spec.Template.Annotations
	maps.Copy(annotations, template)
	annotations[targetNamespacesAnnotation] = watched
	if sizeOf(annotations) > apivalidation.TotalAnnotationSizeLimitB {
		maps.DeleteFunc(annotations, func(key, _ string) bool {
			_, authored := template[key]
			return !authored && isForCatalogs(key)
		})
	}
	return annotations
}

func isForCatalogs(annotation string) bool {
	switch annotation {
	case "alm-examples", "createdAt", "description":
		return true
	}
	return strings.HasPrefix(annotation, "operatorframework.io/")
}

// sizeOf counts as an API server does.
func sizeOf(annotations map[string]string) int {
	size := 0
	for key, value := range annotations {
		size += len(key) + len(value)
	}
	return size
}
