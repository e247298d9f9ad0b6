package bundle

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/intstr"
	"k8s.io/apimachinery/pkg/util/validation"
)

func (v *validator) apiServices() {
	owned := v.bundle.ownedAPIs()
	if n := len(owned); n > MaxAPIServices {
		v.csv(pathAPIServices, "%d API services, more than %d", n, MaxAPIServices)
		return
	}
	first := map[string]operatorsv1alpha1.APIServiceDescription{}
	for i, api := range owned {
		path := fmt.Sprintf("%s[%d]", pathAPIServices, i)
		v.apiServiceName(path, api)
		v.apiServicePort(path, api)
		if !v.hasDeployment(api.DeploymentName) {
			v.csv(path+".deploymentName", "API service %q references non-existent deployment %q", api.GetName(), api.DeploymentName)
		}
		earlier, taken := first[api.GetName()]
		switch {
		case !taken:
			first[api.GetName()] = api
		case earlier.DeploymentName != api.DeploymentName:
			v.csv(path+".deploymentName", "API service %q is of deployment %q, and of %q before", api.GetName(), api.DeploymentName, earlier.DeploymentName)
		case apiServicePort(earlier) != apiServicePort(api):
			v.csv(path+".containerPort", "API service %q has port %d, and %d before", api.GetName(), apiServicePort(api), apiServicePort(earlier))
		}
	}
}

func (v *validator) hasDeployment(name string) bool {
	return slices.ContainsFunc(v.bundle.deployments(), func(deployment operatorsv1alpha1.StrategyDeploymentSpec) bool {
		return deployment.Name == name
	})
}

// apiServiceName has the rules of an API server for the name, which is made of these two.
// The resource is for roles, see [renderer.aggregatedClusterRoles].
func (v *validator) apiServiceName(path string, api operatorsv1alpha1.APIServiceDescription) {
	if reasons := validation.IsDNS1123Subdomain(api.Group); len(reasons) > 0 {
		v.csv(path+".group", "API service %q has invalid group %q: %s", api.GetName(), api.Group, strings.Join(reasons, ", "))
	} else if isReserved(api.Group) {
		v.csv(path+".group", "API service %q is of group %q, which is reserved for Kubernetes: use a group of a domain of yours", api.GetName(), api.Group)
	}
	if reasons := validation.IsDNS1035Label(api.Version); len(reasons) > 0 {
		v.csv(path+".version", "API service %q has invalid version %q: %s", api.GetName(), api.Version, strings.Join(reasons, ", "))
	}
	if reasons := validation.IsDNS1123Subdomain(api.Name); len(reasons) > 0 {
		v.csv(path+".name", "API service %q has invalid resource name %q: %s", api.GetName(), api.Name, strings.Join(reasons, ", "))
	}
}

// isReserved says that an API group is for Kubernetes itself. Whoever registers another version
// of a group that the cluster serves may become its preferred version, and gets what clients
// send without naming one. The groups of metrics are made to be served by others.
func isReserved(group string) bool {
	switch group {
	case "metrics.k8s.io", "custom.metrics.k8s.io", "external.metrics.k8s.io":
		return false
	}
	within := func(domain string) bool { return group == domain || strings.HasSuffix(group, "."+domain) }
	return !strings.Contains(group, ".") || within("k8s.io") || within("kubernetes.io")
}

// apiServicePort finds ports that there cannot be, and those that a webhook of the same
// deployment has lead to another place.
func (v *validator) apiServicePort(path string, api operatorsv1alpha1.APIServiceDescription) {
	number := apiServicePort(api)
	if reasons := validation.IsValidPortNum(int(number)); len(reasons) > 0 {
		v.csv(path+".containerPort", "API service %q has invalid port %d: %s", api.GetName(), number, strings.Join(reasons, ", "))
		return
	}
	for _, webhook := range v.bundle.CSV.Spec.WebhookDefinitions {
		if webhook.DeploymentName != api.DeploymentName || webhookPort(webhook) != number {
			continue
		}
		if target := webhookTargetPort(webhook); target != intstr.FromInt32(number) {
			v.csv(path+".containerPort", "API service %q wants port %d of deployment %q to lead to %d, webhook %q to %s",
				api.GetName(), number, api.DeploymentName, number, webhookName(webhook), target.String())
			return
		}
	}
}
