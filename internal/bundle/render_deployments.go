package bundle

import (
	"maps"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	appsv1 "k8s.io/api/apps/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// targetNamespacesAnnotation is where an operator finds the namespaces that it
// should watch, comma-separated, empty for all of them.
const targetNamespacesAnnotation = "olm.targetNamespaces"

func (r *renderer) deployments() error {
	serving := r.servingDeployments()
	for _, declared := range r.bundle.deployments() {
		deployment := r.deployment(declared)
		if serving.Has(declared.Name) && r.certificates != nil {
			mountCertificate(&deployment.Spec.Template.Spec, certificateName(declared.Name))
		}
		r.config.apply(deployment)
		if err := r.add(deployment); err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) deployment(declared operatorsv1alpha1.StrategyDeploymentSpec) *appsv1.Deployment {
	deployment := &appsv1.Deployment{
		TypeMeta:   metav1.TypeMeta{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
		ObjectMeta: metav1.ObjectMeta{Name: declared.Name, Namespace: r.namespace, Labels: maps.Clone(declared.Label)},
	}
	declared.Spec.DeepCopyInto(&deployment.Spec)

	// Old replica sets cannot be rolled back to: the bundle would undo it.
	deployment.Spec.RevisionHistoryLimit = new(int32(1))

	annotations := maps.Clone(r.bundle.CSV.Annotations)
	if annotations == nil {
		annotations = map[string]string{}
	}
	maps.Copy(annotations, deployment.Spec.Template.Annotations)
	annotations[targetNamespacesAnnotation] = strings.Join(r.watched, ",")
	deployment.Spec.Template.Annotations = annotations
	return deployment
}
