package bundle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var errDifferent = errors.New("they differ")

// mergeSources makes one object of two that share an identity. Authors ship
// manifests for what is made from the ClusterServiceVersion as well, in order
// to add labels and the like; their manifest is kept then, as far as what
// depends on the made one still works.
func mergeSources(made, shipped source) (source, error) {
	if shipped.file == "" {
		made, shipped = shipped, made
	}
	if canonical(made.object) == canonical(shipped.object) {
		return shipped, nil
	}
	if made.file != "" || shipped.file == "" || shipped.object.GroupVersionKind().Group != groupCore {
		return source{}, errDifferent
	}
	switch shipped.object.GetKind() {
	case kindServiceAccount:
		return shipped, nil
	case kindService:
		return mergeServices(made, shipped)
	default:
		return source{}, errDifferent
	}
}

// mergeServices adds to a shipped Service what webhooks need of it.
func mergeServices(made, shipped source) (source, error) {
	var want, have corev1.Service
	for from, into := range map[*unstructured.Unstructured]*corev1.Service{made.object: &want, shipped.object: &have} {
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(from.Object, into); err != nil {
			return source{}, err
		}
	}
	if len(have.Spec.Selector) == 0 {
		have.Spec.Selector = want.Spec.Selector
	}
	if !maps.Equal(want.Spec.Selector, have.Spec.Selector) {
		return source{}, errors.New("they select different pods")
	}
	ports, err := mergePorts(want.Spec.Ports, have.Spec.Ports)
	if err != nil {
		return source{}, err
	}
	have.Spec.Ports = ports
	annotate(&have.ObjectMeta, want.Annotations)
	object, err := toUnstructured(&have)
	if err != nil {
		return source{}, err
	}
	clean(object)
	return source{object: object, file: shipped.file}, nil
}

func mergePorts(want, have []corev1.ServicePort) ([]corev1.ServicePort, error) {
	merged := slices.Clone(have)
	for _, port := range want {
		i := slices.IndexFunc(merged, func(p corev1.ServicePort) bool {
			return p.Port == port.Port && (p.Protocol == "" || p.Protocol == corev1.ProtocolTCP)
		})
		switch {
		case i < 0:
			merged = append(merged, port)
		case targetPort(merged[i]) != port.TargetPort:
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

// targetPort is the port itself where none is set.
func targetPort(port corev1.ServicePort) intstr.IntOrString {
	if port.TargetPort == (intstr.IntOrString{}) {
		return intstr.FromInt32(port.Port)
	}
	return port.TargetPort
}
