package bundlecheck

import (
	"cmp"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/sets"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// declarations warns about what the ClusterServiceVersion states and nothing
// here acts on, or what others have to bring.
func (c *checker) declarations(parsed *bundle.Bundle) {
	csv := &parsed.CSV
	lowest := csv.Spec.MinKubeVersion
	if lowest != "" && requirement.Parse(nil, lowest).Empty() {
		c.warnf("", "spec.minKubeVersion", "%s is not a version: every Kubernetes is taken to be new enough", excerpt.Quote(lowest))
	}
	if parsed.HasOperator() && !parsed.CanHaveOperatorCondition() {
		c.warnf("", "metadata.name", "no OperatorCondition can have the name %s: operatorConditions: true in spec.config.inline has no effect",
			excerpt.Quote(csv.Name))
	}
	if parsed.LacksOperatorCondition(bundle.Config{}) {
		c.warnf("", "", "%s", bundle.OperatorConditionAdvice)
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

// selectors warns about webhooks whose requests can get to pods of others: the controller cannot
// keep them apart by a label of its own.
func (c *checker) selectors(objects []*unstructured.Unstructured) {
	for _, name := range bundle.FixedDeployments(objects) {
		c.warnf("", "", "the selector of Deployment %s excludes the label %s: if another operator in the namespace has the same pod labels, webhook requests can be sent to its pods",
			excerpt.Quote(name), bundle.LabelWorkload)
	}
}

// What APIs of operators ask for at most: classic OLM has registered them with this priority of
// the group, and the metrics server with this one of the version.
const (
	usualGroupPriority   = 2000
	usualVersionPriority = 100
)

// registrations warns about API services that are written by hand: of servers that are not
// checked, that others have to bring, and of an API that goes before those of others.
func (c *checker) registrations(objects []*unstructured.Unstructured) {
	services := sets.New[types.NamespacedName]()
	for _, object := range objects {
		if object.GetKind() == "Service" {
			services.Insert(types.NamespacedName{Namespace: cmp.Or(object.GetNamespace(), installNamespace), Name: object.GetName()})
		}
	}
	for _, object := range objects {
		if object.GetKind() != "APIService" || object.GroupVersionKind().Group != apiregistrationv1.GroupName {
			continue
		}
		name := excerpt.Quote(object.GetName())
		service := &apiregistrationv1.APIService{}
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, service); err != nil {
			c.warnf("", "", "APIService %s cannot be read: %s", name, err)
			continue
		}
		spec := service.Spec
		if spec.InsecureSkipTLSVerify {
			c.warnf("", "", "APIService %s has insecureSkipTLSVerify: anybody who gets between the cluster and the server reads and answers requests", name)
		}
		if spec.GroupPriorityMinimum > usualGroupPriority || spec.VersionPriority > usualVersionPriority {
			c.warnf("", "", "APIService %s has groupPriorityMinimum %d and versionPriority %d, more than the %d and %d that are usual: it may go before APIs of others",
				name, spec.GroupPriorityMinimum, spec.VersionPriority, usualGroupPriority, usualVersionPriority)
		}
		if spec.Service == nil {
			continue
		}
		if at := (types.NamespacedName{Namespace: spec.Service.Namespace, Name: spec.Service.Name}); !services.Has(at) {
			c.warnf("", "", "APIService %s leads to Service %s in namespace %s, which others have to bring: it is not registered before",
				name, excerpt.Quote(at.Name), excerpt.Quote(at.Namespace))
		}
	}
}
