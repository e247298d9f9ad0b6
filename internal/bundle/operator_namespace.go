package bundle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
)

// operatorNamespaceAnnotation is where operators written for classic OLM look
// for the namespace that they are installed in.
const operatorNamespaceAnnotation = "olm.operatorNamespace"

// refersTo is true when something in a pod takes the value of an annotation of
// the pod.
func refersTo(pod *corev1.PodSpec, annotation string) bool {
	path := "metadata.annotations['" + annotation + "']"
	isField := func(field *corev1.ObjectFieldSelector) bool { return field != nil && field.FieldPath == path }

	inEnv := func(env corev1.EnvVar) bool { return env.ValueFrom != nil && isField(env.ValueFrom.FieldRef) }
	inContainer := func(container corev1.Container) bool { return slices.ContainsFunc(container.Env, inEnv) }
	inFile := func(file corev1.DownwardAPIVolumeFile) bool { return isField(file.FieldRef) }
	inProjection := func(projection corev1.VolumeProjection) bool {
		return projection.DownwardAPI != nil && slices.ContainsFunc(projection.DownwardAPI.Items, inFile)
	}
	inVolume := func(volume corev1.Volume) bool {
		return volume.DownwardAPI != nil && slices.ContainsFunc(volume.DownwardAPI.Items, inFile) ||
			volume.Projected != nil && slices.ContainsFunc(volume.Projected.Sources, inProjection)
	}
	return slices.ContainsFunc(pod.Containers, inContainer) ||
		slices.ContainsFunc(pod.InitContainers, inContainer) ||
		slices.ContainsFunc(pod.Volumes, inVolume)
}
