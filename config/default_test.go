package config_test

import (
	"maps"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	policyv1 "k8s.io/api/policy/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/labels"
)

func TestDefaultObjects(t *testing.T) {
	t.Parallel()
	var got []string
	for _, object := range build(t, "default") {
		got = append(got, id(object))
	}
	if want := "Namespace/" + systemNamespace; got[0] != want {
		t.Errorf("%s is applied first, want %s: the others need it", got[0], want)
	}
	want := slices.Concat(slices.Sorted(maps.Keys(allowed())), []string{
		"Namespace/olmv1-system",
		"CustomResourceDefinition/clustercatalogs.olm.operatorframework.io",
		"CustomResourceDefinition/clusterextensions.olm.operatorframework.io",
		"ServiceAccount/olmv1-system/operator-controller-controller-manager",
		"ClusterRoleBinding/operator-controller-manager-rolebinding",
		"RoleBinding/olmv1-system/operator-controller-manager-rolebinding",
		"RoleBinding/default/operator-controller-manager-events-rolebinding",
		"Deployment/olmv1-system/operator-controller-controller-manager",
		"Service/olmv1-system/catalogd-service",
		"PodDisruptionBudget/olmv1-system/operator-controller-controller-manager",
		"NetworkPolicy/olmv1-system/default-deny-ingress",
		"NetworkPolicy/olmv1-system/operator-controller-controller-manager",
	})
	slices.Sort(want)
	slices.Sort(got)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("objects (-want +got):\n%s", diff)
	}
}

func TestNamespaceIsRestricted(t *testing.T) {
	t.Parallel()
	namespace := the[*corev1.Namespace](t, build(t, "default"))
	for _, mode := range []string{"enforce", "audit", "warn"} {
		if got := namespace.Labels["pod-security.kubernetes.io/"+mode]; got != "restricted" {
			t.Errorf("pod security %s is %q, want restricted", mode, got)
		}
	}
}

// The fields that the restricted pod security profile asks for, and a root
// file system that cannot be written.
func TestManagerIsRestricted(t *testing.T) {
	t.Parallel()
	pod := manager(t, build(t, "default")).Spec.Template.Spec
	container := pod.Containers[0]
	yes, no := true, false
	user := int64(65532)
	wantPod := &corev1.PodSecurityContext{
		RunAsNonRoot:   &yes,
		RunAsUser:      &user,
		RunAsGroup:     &user,
		SeccompProfile: &corev1.SeccompProfile{Type: corev1.SeccompProfileTypeRuntimeDefault},
	}
	if diff := cmp.Diff(wantPod, pod.SecurityContext); diff != "" {
		t.Errorf("pod (-want +got):\n%s", diff)
	}
	wantContainer := &corev1.SecurityContext{
		AllowPrivilegeEscalation: &no,
		ReadOnlyRootFilesystem:   &yes,
		Capabilities:             &corev1.Capabilities{Drop: []corev1.Capability{"ALL"}},
	}
	if diff := cmp.Diff(wantContainer, container.SecurityContext); diff != "" {
		t.Errorf("container (-want +got):\n%s", diff)
	}
	if pod.HostNetwork || pod.HostPID || pod.HostIPC || len(pod.InitContainers) > 0 {
		t.Error("the pod shares namespaces with its host or has containers that are not checked here")
	}
	for _, port := range container.Ports {
		if port.HostPort != 0 {
			t.Errorf("port %s is a port of the host", port.Name)
		}
	}
}

func TestManagerWritesIntoBoundedVolumesOnly(t *testing.T) {
	t.Parallel()
	pod := manager(t, build(t, "default")).Spec.Template.Spec
	mounted := map[string]string{}
	for _, mount := range pod.Containers[0].VolumeMounts {
		mounted[mount.Name] = mount.MountPath
	}
	if diff := cmp.Diff(map[string]string{"cache": "/var/cache", "tmp": "/tmp"}, mounted); diff != "" {
		t.Errorf("mounts (-want +got):\n%s", diff)
	}
	for _, volume := range pod.Volumes {
		if volume.EmptyDir == nil || volume.EmptyDir.SizeLimit == nil || volume.EmptyDir.SizeLimit.IsZero() {
			t.Errorf("volume %s is not an emptyDir with a size limit", volume.Name)
		}
	}
}

func TestManagerRuns(t *testing.T) {
	t.Parallel()
	pod := manager(t, build(t, "default")).Spec.Template.Spec
	container := pod.Containers[0]
	want := []string{
		"--leader-elect",
		"--cache-path=/var/cache",
		"--catalog-server-bind-address=:8443",
		"--catalog-server-external-url=https://catalogd-service.olmv1-system.svc",
		"--health-probe-bind-address=:8081",
	}
	if diff := cmp.Diff(want, container.Args); diff != "" {
		t.Errorf("arguments (-want +got):\n%s", diff)
	}
	if got := *pod.TerminationGracePeriodSeconds; got != 60 {
		t.Errorf("grace period is %d s, want 60", got)
	}
	if diff := cmp.Diff(map[string]string{corev1.LabelOSStable: "linux"}, pod.NodeSelector); diff != "" {
		t.Errorf("a node selector beyond the operating system keeps the pod off some clusters (-want +got):\n%s", diff)
	}
	for path, probe := range map[string]*corev1.Probe{"/healthz": container.LivenessProbe, "/readyz": container.ReadinessProbe} {
		if probe == nil || probe.HTTPGet.Path != path || probe.HTTPGet.Port.String() != "health" {
			t.Errorf("the probe for %s is %v", path, probe)
		}
	}
	if port(container, "health") != 8081 {
		t.Error("the health port is not the one in the arguments")
	}
	for _, resource := range []corev1.ResourceName{corev1.ResourceCPU, corev1.ResourceMemory} {
		if container.Resources.Requests.Name(resource, "").IsZero() {
			t.Errorf("no request for %s", resource)
		}
	}
}

// port is the number of a named port, 0 when there is none.
func port(container corev1.Container, name string) int32 {
	for _, port := range container.Ports {
		if port.Name == name {
			return port.ContainerPort
		}
	}
	return 0
}

// The service, the budget and the policies are about the manager's pods.
func TestSelectorsMatchTheManager(t *testing.T) {
	t.Parallel()
	objects := build(t, "default")
	pod := labels.Set(manager(t, objects).Spec.Template.Labels)
	budget := the[*policyv1.PodDisruptionBudget](t, objects)
	selectors := map[string]*metav1.LabelSelector{
		id(manager(t, objects)): manager(t, objects).Spec.Selector,
		id(budget):              budget.Spec.Selector,
	}
	for _, policy := range all[*networkingv1.NetworkPolicy](objects) {
		selectors[id(policy)] = &policy.Spec.PodSelector
	}
	service := the[*corev1.Service](t, objects)
	selectors[id(service)] = metav1.SetAsLabelSelector(service.Spec.Selector)
	for name, selector := range selectors {
		compiled, err := metav1.LabelSelectorAsSelector(selector)
		if err != nil {
			t.Fatal(err)
		}
		if !compiled.Matches(pod) {
			t.Errorf("%s does not select the manager", name)
		}
	}
	if budget.Spec.MaxUnavailable == nil || budget.Spec.MaxUnavailable.IntValue() != 1 {
		t.Errorf("the disruption budget is %v, want at most 1 unavailable", budget.Spec.MaxUnavailable)
	}
}

func TestCatalogService(t *testing.T) {
	t.Parallel()
	objects := build(t, "default")
	ports := the[*corev1.Service](t, objects).Spec.Ports
	if len(ports) != 1 || ports[0].Port != 443 {
		t.Fatalf("ports are %v, want 443, which the advertised URL implies", ports)
	}
	container := manager(t, objects).Spec.Template.Spec.Containers[0]
	if got := port(container, ports[0].TargetPort.String()); got != 8443 {
		t.Errorf("the service leads to port %d, want 8443", got)
	}
}

func TestNetworkPolicies(t *testing.T) {
	t.Parallel()
	open := map[string][]int{}
	for _, policy := range all[*networkingv1.NetworkPolicy](build(t, "default")) {
		if !slices.Equal(policy.Spec.PolicyTypes, []networkingv1.PolicyType{networkingv1.PolicyTypeIngress}) {
			t.Errorf("%s is about %v, want ingress only", id(policy), policy.Spec.PolicyTypes)
		}
		open[policy.Name] = openPorts(policy)
	}
	want := map[string][]int{
		"default-deny-ingress":                   nil,
		"operator-controller-controller-manager": {8443, 7443},
	}
	if diff := cmp.Diff(want, open); diff != "" {
		t.Errorf("open ports (-want +got):\n%s", diff)
	}
}

func openPorts(policy *networkingv1.NetworkPolicy) []int {
	var ports []int
	for _, rule := range policy.Spec.Ingress {
		for _, port := range rule.Ports {
			ports = append(ports, port.Port.IntValue())
		}
	}
	return ports
}

// elsewhere is what has to be in another namespace: events about extensions,
// which are in none, are in this one.
var elsewhere = map[string]string{
	"Role/default/operator-controller-manager-events-role":               "default",
	"RoleBinding/default/operator-controller-manager-events-rolebinding": "default",
}

func TestEverythingIsInTheSystemNamespace(t *testing.T) {
	t.Parallel()
	for _, object := range build(t, "default") {
		if namespace := object.GetNamespace(); namespace != "" && namespace != systemNamespace && namespace != elsewhere[id(object)] {
			t.Errorf("%s is in namespace %q", id(object), namespace)
		}
		if got := object.GetLabels()["app.kubernetes.io/part-of"]; got != "operator-controller" {
			t.Errorf("%s is part of %q", id(object), got)
		}
	}
}
