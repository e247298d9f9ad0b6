package bundle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var errDifferent = errors.New("they differ")

// mergeSources makes one object of two that share an identity. Authors ship
// manifests for what is made from the ClusterServiceVersion as well, in order
// to add labels and the like; their manifest is kept then, together with what
// depends on the made one.
func mergeSources(made, shipped source) (source, error) {
	if canonical(made.object) == canonical(shipped.object) {
		return shipped, nil
	}
	if made.file != "" || shipped.file == "" {
		return source{}, errDifferent
	}
	kind := shipped.object.GroupVersionKind().GroupKind()
	switch kind {
	case schema.GroupKind{Kind: kindServiceAccount}:
		return shipped, nil
	case schema.GroupKind{Kind: kindService}:
		return mergeServices(made, shipped)
	case schema.GroupKind{Group: groupRBAC, Kind: kindRole}, schema.GroupKind{Group: groupRBAC, Kind: kindClusterRole}:
		return mergeLists(made, shipped, "rules")
	case schema.GroupKind{Group: groupRBAC, Kind: kindRoleBinding}, schema.GroupKind{Group: groupRBAC, Kind: kindClusterRoleBinding}:
		if !equality.Semantic.DeepEqual(made.object.Object["roleRef"], shipped.object.Object["roleRef"]) {
			return source{}, errors.New("they bind different roles")
		}
		return mergeLists(made, shipped, "subjects")
	default:
		return source{}, errDifferent
	}
}

// mergeLists appends what a list of the shipped object lacks: rights add up.
func mergeLists(made, shipped source, field string) (source, error) {
	merged := shipped.object.DeepCopy()
	have, _ := merged.Object[field].([]any)
	want, _ := made.object.Object[field].([]any)
	merged.Object[field] = appendMissing(have, want)
	merged.SetLabels(union(merged.GetLabels(), made.object.GetLabels()))
	return source{object: merged, file: shipped.file}, nil
}

// union is the first map with the second over it; nil if both are empty.
func union(below, above map[string]string) map[string]string {
	if len(above) == 0 {
		return below
	}
	merged := maps.Clone(below)
	if merged == nil {
		merged = map[string]string{}
	}
	maps.Copy(merged, above)
	return merged
}

// mergeServices adds to a shipped Service what webhooks need of it, and leaves
// the rest of the manifest as authored.
func mergeServices(made, shipped source) (source, error) {
	var want, have corev1.Service
	if err := errors.Join(decodeTyped(made.object.Object, &want), decodeTyped(shipped.object.Object, &have)); err != nil {
		return source{}, err
	}
	for key, value := range have.Spec.Selector {
		if actual, ok := made.pod.Labels[key]; !ok || actual != value {
			return source{}, fmt.Errorf("its selector %s=%s does not select the pods of the webhooks", key, value)
		}
	}
	ports, err := mergePorts(want.Spec.Ports, have.Spec.Ports, &made.pod.Spec)
	if err != nil {
		return source{}, err
	}
	spec, err := toUnstructured(corev1.ServiceSpec{Ports: ports, Selector: want.Spec.Selector})
	if err != nil {
		return source{}, err
	}
	merged := shipped.object.DeepCopy()
	for field, value := range spec.Object {
		if err := unstructured.SetNestedField(merged.Object, value, "spec", field); err != nil {
			return source{}, err
		}
	}
	merged.SetAnnotations(union(merged.GetAnnotations(), want.Annotations))
	return source{object: merged, file: shipped.file}, nil
}

func mergePorts(want, have []corev1.ServicePort, pod *corev1.PodSpec) ([]corev1.ServicePort, error) {
	merged := slices.Clone(have)
	for i := range merged {
		if merged[i].TargetPort == (intstr.IntOrString{}) {
			merged[i].TargetPort = intstr.FromInt32(merged[i].Port)
		}
	}
	first := map[int32]int{} // of each number, TCP only
	for i, port := range slices.Backward(merged) {
		if port.Protocol == "" || port.Protocol == corev1.ProtocolTCP {
			first[port.Port] = i
		}
	}
	named := namedPorts(pod)
	for _, port := range want {
		i, found := first[port.Port]
		switch {
		case !found:
			merged = append(merged, port)
		case numberOf(merged[i].TargetPort, named) != numberOf(port.TargetPort, named):
			return nil, fmt.Errorf("port %d leads to %s and to %s", port.Port, merged[i].TargetPort.String(), port.TargetPort.String())
		}
	}
	if len(merged) > 1 {
		for i := range merged {
			// Several ports need a name each.
			if merged[i].Name == "" {
				merged[i].Name = strconv.Itoa(int(merged[i].Port))
			}
		}
	}
	return merged, nil
}

// namedPorts are the numbers behind the names that containers give to ports, of which
// the first of a name counts.
func namedPorts(pod *corev1.PodSpec) map[string]int32 {
	numbers := map[string]int32{}
	for i := range pod.Containers {
		for _, port := range pod.Containers[i].Ports {
			if _, known := numbers[port.Name]; !known {
				numbers[port.Name] = port.ContainerPort
			}
		}
	}
	return numbers
}

func numberOf(port intstr.IntOrString, named map[string]int32) intstr.IntOrString {
	if number, found := named[port.StrVal]; found && port.Type == intstr.String {
		return intstr.FromInt32(number)
	}
	return port
}
