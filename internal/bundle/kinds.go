package bundle

import "k8s.io/apimachinery/pkg/runtime/schema"

// API groups of what a bundle may ship.
const (
	groupCore          = ""
	groupApps          = "apps"
	groupRBAC          = "rbac.authorization.k8s.io"
	groupAPIExtensions = "apiextensions.k8s.io"
	groupConsole       = "console.openshift.io"
	groupMonitoring    = "monitoring.coreos.com"
	groupOperators     = "operators.coreos.com"
)

const (
	kindCSV                = "ClusterServiceVersion"
	kindCRD                = "CustomResourceDefinition"
	kindDeployment         = "Deployment"
	kindService            = "Service"
	kindServiceAccount     = "ServiceAccount"
	kindRole               = "Role"
	kindRoleBinding        = "RoleBinding"
	kindClusterRole        = "ClusterRole"
	kindClusterRoleBinding = "ClusterRoleBinding"
	kindAPIService         = "APIService"
)

// scope says whether objects of a kind live in a namespace.
type scope int

const (
	clusterScoped scope = iota
	namespaced
)

// rbacGroups: OpenShift serves RBAC under its own group as well.
func rbacGroups() []string {
	return []string{groupRBAC, "authorization.openshift.io"}
}

// manifestKinds lists what may lie in manifests/ beside the
// ClusterServiceVersion and the CustomResourceDefinitions. Workloads are left
// out on purpose: those of a bundle are in its ClusterServiceVersion.
//
// The group monitoring.rhobs is the API of the Prometheus operator under
// another name.
func manifestKinds() map[schema.GroupKind]scope {
	kinds := map[schema.GroupKind]scope{
		{Group: groupCore, Kind: kindService}:                        namespaced,
		{Group: groupCore, Kind: kindServiceAccount}:                 namespaced,
		{Group: groupCore, Kind: "Secret"}:                           namespaced,
		{Group: groupCore, Kind: "ConfigMap"}:                        namespaced,
		{Group: "policy", Kind: "PodDisruptionBudget"}:               namespaced,
		{Group: "networking.k8s.io", Kind: "NetworkPolicy"}:          namespaced,
		{Group: "autoscaling.k8s.io", Kind: "VerticalPodAutoscaler"}: namespaced,
		{Group: "scheduling.k8s.io", Kind: "PriorityClass"}:          clusterScoped,
		{Group: groupConsole, Kind: "ConsoleYAMLSample"}:             clusterScoped,
		{Group: groupConsole, Kind: "ConsoleQuickStart"}:             clusterScoped,
		{Group: groupConsole, Kind: "ConsoleCLIDownload"}:            clusterScoped,
		{Group: groupConsole, Kind: "ConsoleLink"}:                   clusterScoped,
		{Group: groupConsole, Kind: "ConsolePlugin"}:                 clusterScoped,
	}
	for _, group := range rbacGroups() {
		kinds[schema.GroupKind{Group: group, Kind: kindRole}] = namespaced
		kinds[schema.GroupKind{Group: group, Kind: kindRoleBinding}] = namespaced
		kinds[schema.GroupKind{Group: group, Kind: kindClusterRole}] = clusterScoped
		kinds[schema.GroupKind{Group: group, Kind: kindClusterRoleBinding}] = clusterScoped
	}
	for _, group := range []string{groupMonitoring, "monitoring.rhobs"} {
		kinds[schema.GroupKind{Group: group, Kind: "PrometheusRule"}] = namespaced
		kinds[schema.GroupKind{Group: group, Kind: "ServiceMonitor"}] = namespaced
		kinds[schema.GroupKind{Group: group, Kind: "PodMonitor"}] = namespaced
	}
	return kinds
}
