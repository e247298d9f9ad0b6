package bundlecheck

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// declarations warns about what the ClusterServiceVersion states and nothing
// here acts on, or what others have to bring.
func (c *checker) declarations(parsed *bundle.Bundle) {
	csv := &parsed.CSV
	for _, mode := range csv.Spec.InstallModes {
		if mode.Type == operatorsv1alpha1.InstallModeTypeMultiNamespace && mode.Supported {
			c.warnf("", "spec.installModes", "MultiNamespace is never used: an extension watches one namespace or all")
		}
	}
	lowest := csv.Spec.MinKubeVersion
	if lowest != "" && requirement.Parse(nil, lowest).Empty() {
		c.warnf("", "spec.minKubeVersion", "%s is not a version: every Kubernetes is taken to be new enough", excerpt.Quote(lowest))
	}
	if parsed.HasOperator() && !parsed.CanHaveOperatorCondition() {
		c.warnf("", "metadata.name", "no OperatorCondition can have the name %s: none is made where the configuration asks for one; OPERATOR_CONDITION_NAME is set all the same",
			excerpt.Quote(csv.Name))
	}
	if csv.Spec.Cleanup.Enabled {
		c.warnf("", "spec.cleanup.enabled", "nothing acts on it: custom resources go only with their definitions")
	}
	for _, required := range csv.Spec.CustomResourceDefinitions.Required {
		c.warnf("", "spec.customresourcedefinitions.required", "needs CustomResourceDefinition %s, which others have to bring", excerpt.Quote(required.Name))
	}
	for _, required := range csv.Spec.APIServiceDefinitions.Required {
		c.warnf("", "spec.apiservicedefinitions.required", "needs API service %s, which others have to bring", excerpt.Quote(required.GetName()))
	}
}

// subjects warns about rights for ServiceAccounts of the bundle in a namespace
// that its author had, and where nobody has it installed.
func (c *checker) subjects(objects []*unstructured.Unstructured) {
	accounts := sets.New[types.NamespacedName]()
	for _, object := range objects {
		if object.GetKind() == "ServiceAccount" {
			accounts.Insert(types.NamespacedName{Namespace: object.GetNamespace(), Name: object.GetName()})
		}
	}
	for _, object := range objects {
		if kind := object.GetKind(); kind != "RoleBinding" && kind != "ClusterRoleBinding" {
			continue
		}
		// Subjects that cannot be read are none of those.
		subjects, _, _ := unstructured.NestedSlice(object.Object, "subjects")
		for _, subject := range subjects {
			fields, _ := subject.(map[string]any)
			name, _ := fields["name"].(string)
			namespace, _ := fields["namespace"].(string)
			meant := types.NamespacedName{Namespace: installNamespace, Name: name}
			written := types.NamespacedName{Namespace: namespace, Name: name}
			if fields["kind"] == "ServiceAccount" && accounts.Has(meant) && !accounts.Has(written) {
				c.warnf("", "", "%s %s grants rights to ServiceAccount %s in namespace %s, but that of the bundle will be in the namespace of the installation",
					object.GetKind(), excerpt.Quote(object.GetName()), excerpt.Quote(name), excerpt.Quote(namespace))
			}
		}
	}
}
