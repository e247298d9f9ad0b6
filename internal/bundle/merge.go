package bundle

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/intstr"
)

var errDifferent = errors.New("they differ")

// mergeSources makes one object of two that share an identity. Authors ship
// manifests for what is made from the ClusterServiceVersion as well, in order
// to add labels and the like; their manifest is kept then, as far as what
// depends on the made one still works.
func mergeSources(made, shipped source) (source, error) {
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

// mergeServices adds to a shipped Service what webhooks need of it, and leaves
// the rest of the manifest as authored.
func mergeServices(made, shipped source) (source, error) {
	var want, have corev1.Service
	if err := errors.Join(decodeTyped(made.object.Object, &want), decodeTyped(shipped.object.Object, &have)); err != nil {
		return source{}, err
	}
	if len(have.Spec.Selector) > 0 && !maps.Equal(want.Spec.Selector, have.Spec.Selector) {
		return source{}, errors.New("they select different pods")
	}
	ports, err := mergePorts(want.Spec.Ports, have.Spec.Ports)
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
	if annotations := merged.GetAnnotations(); len(want.Annotations) > 0 {
		if annotations == nil {
			annotations = map[string]string{}
		}
		maps.Copy(annotations, want.Annotations)
		merged.SetAnnotations(annotations)
	}
	return source{object: merged, file: shipped.file}, nil
}

func mergePorts(want, have []corev1.ServicePort) ([]corev1.ServicePort, error) {
	merged := slices.Clone(have)
	for i := range merged {
		if merged[i].TargetPort == (intstr.IntOrString{}) {
			merged[i].TargetPort = intstr.FromInt32(merged[i].Port)
		}
	}
	for _, port := range want {
		i := slices.IndexFunc(merged, func(p corev1.ServicePort) bool {
			return p.Port == port.Port && (p.Protocol == "" || p.Protocol == corev1.ProtocolTCP)
		})
		switch {
		case i < 0:
			merged = append(merged, port)
		case merged[i].TargetPort != port.TargetPort:
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
