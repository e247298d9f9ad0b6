package inspect

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// nodeAccess says what the pods of a test would have of the node that they run on, beside their part of
// it: whoever has that has the node, and what else runs there. It is empty for nothing.
func nodeAccess(object *unstructured.Unstructured) string {
	var path []string
	switch object.GetKind() {
	case "Pod":
		path = []string{"spec"}
	case "Job":
		path = []string{"spec", "template", "spec"}
	default:
		return ""
	}
	found, _, _ := unstructured.NestedFieldNoCopy(object.Object, path...)
	fields, _ := found.(map[string]any) // where there are none, the API server takes no pod
	var pod corev1.PodSpec
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(fields, &pod); err != nil {
		return "a pod that cannot be read"
	}
	return accessOf(pod)
}

func accessOf(pod corev1.PodSpec) string {
	containers := slices.Concat(pod.InitContainers, pod.Containers)
	switch {
	case pod.HostNetwork, pod.HostPID, pod.HostIPC:
		return "namespaces of its node"
	case slices.ContainsFunc(pod.Volumes, func(volume corev1.Volume) bool { return volume.HostPath != nil }):
		return "files of its node"
	case pod.SecurityContext != nil && isHostProcess(pod.SecurityContext.WindowsOptions), slices.ContainsFunc(containers, isPrivileged):
		return "privileges on its node"
	case slices.ContainsFunc(containers, hasHostPort):
		return "ports of its node"
	}
	return ""
}

// isPrivileged counts what a container has added to what the runtime gives to each.
func isPrivileged(container corev1.Container) bool {
	context := container.SecurityContext
	return context != nil && (context.Privileged != nil && *context.Privileged ||
		context.Capabilities != nil && len(context.Capabilities.Add) > 0 ||
		context.ProcMount != nil && *context.ProcMount != corev1.DefaultProcMount || isHostProcess(context.WindowsOptions))
}

func isHostProcess(options *corev1.WindowsSecurityContextOptions) bool {
	return options != nil && options.HostProcess != nil && *options.HostProcess
}

func hasHostPort(container corev1.Container) bool {
	return slices.ContainsFunc(container.Ports, func(port corev1.ContainerPort) bool { return port.HostPort != 0 })
}
