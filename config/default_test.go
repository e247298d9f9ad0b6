package config_test

import (
	"maps"
	"os"
	"regexp"
	"slices"
	"strconv"
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
		"CustomResourceDefinition/imagepolicies.policy.clusterextensions.dev",
		"ServiceAccount/olmv1-system/operator-controller-controller-manager",
		"ClusterRoleBinding/operator-controller-manager-rolebinding",
		"RoleBinding/olmv1-system/operator-controller-manager-rolebinding",
		"RoleBinding/default/operator-controller-manager-events-rolebinding",
		"Deployment/olmv1-system/operator-controller-controller-manager",
		"ValidatingAdmissionPolicy/operator-controller-deletion-guard",
		"ValidatingAdmissionPolicy/operator-controller-uninstall-guard",
		"ValidatingAdmissionPolicyBinding/operator-controller-deletion-guard",
		"ValidatingAdmissionPolicyBinding/operator-controller-uninstall-guard",
		"ResourceQuota/olmv1-system/operator-controller-critical-pods",
		"Service/olmv1-system/catalogd-service",
		"Service/olmv1-system/operator-controller-service",
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

// What may be removed and what has to stay are all there is, and share nothing: to
// remove the controller is to remove no definition, no record and not their guard.
func TestTheControllerCanBeRemovedAlone(t *testing.T) {
	t.Parallel()
	ids := func(dir string) []string {
		var found []string
		for _, object := range build(t, dir) {
			found = append(found, id(object))
		}
		return slices.Sorted(slices.Values(found))
	}
	stays := ids("prerequisites")
	want := []string{
		"CustomResourceDefinition/clustercatalogs.olm.operatorframework.io",
		"CustomResourceDefinition/clusterextensions.olm.operatorframework.io",
		"CustomResourceDefinition/imagepolicies.policy.clusterextensions.dev",
		"Namespace/olmv1-system",
		"ValidatingAdmissionPolicy/operator-controller-deletion-guard",
		"ValidatingAdmissionPolicy/operator-controller-uninstall-guard",
		"ValidatingAdmissionPolicyBinding/operator-controller-deletion-guard",
		"ValidatingAdmissionPolicyBinding/operator-controller-uninstall-guard",
	}
	if diff := cmp.Diff(want, stays); diff != "" {
		t.Errorf("what stays (-want +got):\n%s", diff)
	}
	both := slices.Sorted(slices.Values(slices.Concat(stays, ids("controller"))))
	if diff := cmp.Diff(ids("default"), both); diff != "" {
		t.Errorf("the parts are not the whole (-default +parts):\n%s", diff)
	}
	for _, object := range build(t, "default") {
		_, pruned := slices.BinarySearch(stays, id(object))
		kept := object.GetAnnotations()["argocd.argoproj.io/sync-options"] == "Prune=false,Delete=false" &&
			object.GetAnnotations()["kustomize.toolkit.fluxcd.io/prune"] == "disabled"
		if kept != pruned {
			t.Errorf("%s: what syncs from a repository is told to keep it: %t", id(object), kept)
		}
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
		"--metrics-bind-address=:7443",
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
	if port(container, "health") != 8081 {
		t.Error("the health port is not the one in the arguments")
	}
}

// The request is what 1,000 extensions take, and the limit what all that is allowed
// takes at its largest, by docs/performance.md; the processor is not limited.
func TestManagerHasMemory(t *testing.T) {
	t.Parallel()
	const mebibyte = 1 << 20
	resources := manager(t, build(t, "default")).Spec.Template.Spec.Containers[0].Resources
	page, err := os.ReadFile("../docs/performance.md")
	if err != nil {
		t.Fatal(err)
	}
	measured := func(row string) int64 {
		match := regexp.MustCompile(regexp.QuoteMeta(row) + ` \| \*{0,2}(\d+) MiB`).FindSubmatch(page)
		if match == nil {
			t.Fatalf("docs/performance.md does not have %q", row)
		}
		size, err := strconv.ParseInt(string(match[1]), 10, 64)
		if err != nil {
			t.Fatal(err)
		}
		return size * mebibyte
	}
	if request, need := resources.Requests.Memory().Value(), measured("peak memory after upgrades of 200 of 1,000 extensions"); request < need {
		t.Errorf("the request is %d MiB, and %d are used", request/mebibyte, need/mebibyte)
	}
	if limit, need := resources.Limits.Memory().Value(), measured("memory of the process that the kernel cannot drop"); limit < 2*need {
		t.Errorf("the limit is %d MiB, less than twice the %d that were used", limit/mebibyte, need/mebibyte)
	}
	if resources.Requests.Cpu().IsZero() || !resources.Limits.Cpu().IsZero() {
		t.Errorf("resources are %v", resources)
	}
}

// Replicas come and go without a gap, and not from one node only. Nothing that is
// preferred is asked for: one node is enough.
func TestReplicas(t *testing.T) {
	t.Parallel()
	objects := build(t, "default")
	spec := manager(t, objects).Spec
	rolling := spec.Strategy.RollingUpdate
	if *spec.Replicas != 2 || rolling == nil || rolling.MaxUnavailable.IntValue() != 0 || rolling.MaxSurge.IntValue() != 1 {
		t.Errorf("%d replicas, replaced by %+v", *spec.Replicas, spec.Strategy)
	}
	budget := the[*policyv1.PodDisruptionBudget](t, objects).Spec
	if budget.MaxUnavailable.IntValue() != 1 || *budget.UnhealthyPodEvictionPolicy != policyv1.AlwaysAllow {
		t.Errorf("the budget is %+v", budget)
	}
	pod := spec.Template.Spec
	apart := pod.Affinity.PodAntiAffinity
	if len(apart.RequiredDuringSchedulingIgnoredDuringExecution) > 0 ||
		apart.PreferredDuringSchedulingIgnoredDuringExecution[0].PodAffinityTerm.TopologyKey != corev1.LabelHostname {
		t.Errorf("replicas are kept apart by %+v", apart)
	}
	spread := pod.TopologySpreadConstraints[0]
	if spread.TopologyKey != corev1.LabelTopologyZone || spread.WhenUnsatisfiable != corev1.ScheduleAnyway {
		t.Errorf("replicas are spread by %+v", spread)
	}
}

// Where critical pods take a quota, there is one that holds no rollout up.
func TestCriticalPodsHaveAQuota(t *testing.T) {
	t.Parallel()
	objects := build(t, "default")
	deployment, quota := manager(t, objects), the[*corev1.ResourceQuota](t, objects)
	want := []corev1.ScopedResourceSelectorRequirement{{
		ScopeName: corev1.ResourceQuotaScopePriorityClass,
		Operator:  corev1.ScopeSelectorOpIn,
		Values:    []string{deployment.Spec.Template.Spec.PriorityClassName},
	}}
	if diff := cmp.Diff(want, quota.Spec.ScopeSelector.MatchExpressions); diff != "" {
		t.Errorf("the quota is for (-want +got):\n%s", diff)
	}
	if pods := quota.Spec.Hard.Pods().Value(); len(quota.Spec.Hard) != 1 || pods < 3*int64(*deployment.Spec.Replicas) {
		t.Errorf("it allows %v", quota.Spec.Hard)
	}
}

// A start may take long, and what has started is ready or dead soon.
func TestProbes(t *testing.T) {
	t.Parallel()
	container := manager(t, build(t, "default")).Spec.Template.Spec.Containers[0]
	for name, tc := range map[string]struct {
		probe  *corev1.Probe
		path   string
		period int32
	}{
		"startup":   {container.StartupProbe, "/healthz", 1},
		"liveness":  {container.LivenessProbe, "/healthz", 20},
		"readiness": {container.ReadinessProbe, "/readyz", 2},
	} {
		if tc.probe == nil || tc.probe.HTTPGet.Path != tc.path || tc.probe.HTTPGet.Port.String() != "health" ||
			tc.probe.PeriodSeconds != tc.period || tc.probe.InitialDelaySeconds != 0 {
			t.Errorf("the probe for %s is %v", name, tc.probe)
		}
	}
	if got := container.StartupProbe.FailureThreshold; got < 60 {
		t.Errorf("a start may take %d s", got)
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
	for _, service := range all[*corev1.Service](objects) {
		selectors[id(service)] = metav1.SetAsLabelSelector(service.Spec.Selector)
	}
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

// Each port of a Service leads to that of the arguments; 443 is what the advertised
// URL implies, and the others are those by which scrapers know them.
func TestServices(t *testing.T) {
	t.Parallel()
	objects := build(t, "default")
	container := manager(t, objects).Spec.Template.Spec.Containers[0]
	got := map[string][2]int32{}
	for _, service := range all[*corev1.Service](objects) {
		for _, served := range service.Spec.Ports {
			got[service.Name+" "+served.Name] = [2]int32{served.Port, port(container, served.TargetPort.String())}
		}
	}
	want := map[string][2]int32{
		"catalogd-service https":              {443, 8443},
		"catalogd-service metrics":            {7443, 7443},
		"operator-controller-service metrics": {8443, 7443},
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("ports, and where they lead (-want +got):\n%s", diff)
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
		if got := object.GetLabels()["app.kubernetes.io/part-of"]; got != "olm" {
			t.Errorf("%s is part of %q", id(object), got)
		}
	}
}
