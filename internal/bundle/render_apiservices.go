package bundle

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/sets"
	apiregistrationv1 "k8s.io/kube-aggregator/pkg/apis/apiregistration/v1"
)

const (
	// Priorities of the APIs of operators among those of the cluster, as classic OLM had them.
	apiGroupPriority   = 2000
	apiVersionPriority = 15

	// authDelegator is the ClusterRole of those who ask the cluster who a caller is and what
	// it may do, and authReader the Role in kube-system of those who read by what certificate
	// they know requests that come through the cluster. Every cluster has both.
	authDelegator       = "system:auth-delegator"
	authReader          = "extension-apiserver-authentication-reader"
	authReaderNamespace = metav1.NamespaceSystem
)

func (b *Bundle) ownedAPIs() []operatorsv1alpha1.APIServiceDescription {
	return b.CSV.Spec.APIServiceDefinitions.Owned
}

// apiServicePort is the port of the Service, and of the container behind it.
func apiServicePort(api operatorsv1alpha1.APIServiceDescription) int32 {
	return cmp.Or(api.ContainerPort, defaultWebhookPort)
}

// apiServices has the cluster send requests for the APIs of the bundle to its deployments,
// which ask the cluster whether to answer them.
func (r *renderer) apiServices() error {
	registered := sets.New[string]()
	for _, api := range r.bundle.ownedAPIs() {
		// An entry is a kind of an API, which is registered once.
		if name := api.GetName(); registered.Has(name) {
			continue
		}
		registered.Insert(api.GetName())
		if err := r.add(r.apiService(api)); err != nil {
			return err
		}
	}
	for _, declared := range r.bundle.deployments() {
		if !r.servesAPIs(declared.Name) {
			continue
		}
		delegator, reader := r.delegationBindings(declared)
		if err := r.add(delegator); err != nil {
			return err
		}
		if err := r.add(reader); err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) servesAPIs(deployment string) bool {
	return slices.ContainsFunc(r.bundle.ownedAPIs(), func(api operatorsv1alpha1.APIServiceDescription) bool {
		return api.DeploymentName == deployment
	})
}

func (r *renderer) apiService(api operatorsv1alpha1.APIServiceDescription) *apiregistrationv1.APIService {
	service := &apiregistrationv1.APIService{
		TypeMeta:   metav1.TypeMeta{APIVersion: apiregistrationv1.SchemeGroupVersion.String(), Kind: kindAPIService},
		ObjectMeta: metav1.ObjectMeta{Name: api.GetName()},
		Spec: apiregistrationv1.APIServiceSpec{
			Group:                api.Group,
			Version:              api.Version,
			GroupPriorityMinimum: apiGroupPriority,
			VersionPriority:      apiVersionPriority,
			Service: &apiregistrationv1.ServiceReference{
				Namespace: r.namespace,
				Name:      webhookServiceName(api.DeploymentName),
				Port:      new(apiServicePort(api)),
			},
		},
	}
	r.injectCA(&service.ObjectMeta, api.DeploymentName)
	return service
}

// delegationBindings let a deployment leave it to the cluster who may do what. They are
// named as classic OLM named them.
func (r *renderer) delegationBindings(declared operatorsv1alpha1.StrategyDeploymentSpec) (*rbacv1.ClusterRoleBinding, *rbacv1.RoleBinding) {
	service, pod := webhookServiceName(declared.Name), declared.Spec.Template.Spec
	subjects := []rbacv1.Subject{{
		Kind:      rbacv1.ServiceAccountKind,
		Name:      cmp.Or(pod.ServiceAccountName, pod.DeprecatedServiceAccount, defaultServiceAccount),
		Namespace: r.namespace,
	}}
	delegator := &rbacv1.ClusterRoleBinding{
		TypeMeta:   rbacType(kindClusterRoleBinding),
		ObjectMeta: metav1.ObjectMeta{Name: service + "-" + authDelegator},
		Subjects:   subjects,
		RoleRef:    rbacv1.RoleRef{APIGroup: groupRBAC, Kind: kindClusterRole, Name: authDelegator},
	}
	reader := &rbacv1.RoleBinding{
		TypeMeta:   rbacType(kindRoleBinding),
		ObjectMeta: metav1.ObjectMeta{Name: service + "-auth-reader", Namespace: authReaderNamespace},
		Subjects:   subjects,
		RoleRef:    rbacv1.RoleRef{APIGroup: groupRBAC, Kind: kindRole, Name: authReader},
	}
	return delegator, reader
}

// apiServicePorts are those of the Service of a deployment, which its webhooks share.
func (r *renderer) apiServicePorts(deployment string) []corev1.ServicePort {
	var ports []corev1.ServicePort
	for _, api := range r.bundle.ownedAPIs() {
		if api.DeploymentName != deployment {
			continue
		}
		number := apiServicePort(api)
		ports = append(ports, corev1.ServicePort{
			Name:       strconv.Itoa(int(number)),
			Port:       number,
			TargetPort: intstr.FromInt32(number),
		})
	}
	return ports
}

// providedAPI is an API as the roles of the users of a cluster name it.
type providedAPI struct {
	name, version   string
	resource, group string

	// defined says that there is a definition to look at.
	defined bool
}

// providedAPIs are those of definitions and those that deployments serve.
func (r *renderer) providedAPIs() []providedAPI {
	var provided []providedAPI
	for _, owned := range r.bundle.CSV.Spec.CustomResourceDefinitions.Owned {
		resource, group, _ := strings.Cut(owned.Name, ".")
		provided = append(provided, providedAPI{name: owned.Name, version: owned.Version, resource: resource, group: group, defined: true})
	}
	for _, api := range r.bundle.ownedAPIs() {
		provided = append(provided, providedAPI{name: api.Name, version: api.Version, resource: api.Name, group: api.Group})
	}
	return provided
}
