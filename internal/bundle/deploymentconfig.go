package bundle

import (
	"fmt"
	"maps"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// DeploymentConfig customizes the pods of all deployments of a bundle. What it
// says about containers is for all of them, init containers excepted. A field
// that is not set changes nothing.
type DeploymentConfig struct {
	// NodeSelector replaces that of the bundle; an empty one clears it.
	NodeSelector map[string]string `json:"nodeSelector,omitempty"`

	// Tolerations are added to those of the bundle.
	Tolerations []corev1.Toleration `json:"tolerations,omitempty"`

	// Resources replace those of every container; empty ones clear them.
	Resources *corev1.ResourceRequirements `json:"resources,omitempty"`

	// EnvFrom is added to every container.
	EnvFrom []corev1.EnvFromSource `json:"envFrom,omitempty"`

	// Env is added to every container and replaces variables of the same name.
	Env []corev1.EnvVar `json:"env,omitempty"`

	// Volumes are added, and replace volumes of the same name.
	Volumes []corev1.Volume `json:"volumes,omitempty"`

	// VolumeMounts are added to every container, and replace mounts of the same
	// volume.
	VolumeMounts []corev1.VolumeMount `json:"volumeMounts,omitempty"`

	// Affinity replaces that of the bundle, each of its three parts on its own;
	// an empty part clears that part, an empty affinity all of them.
	Affinity *corev1.Affinity `json:"affinity,omitempty"`

	// Annotations are added to deployments and pods. Those of the bundle stay.
	Annotations map[string]string `json:"annotations,omitempty"`
}

// checkSize bounds what is added in all. Each deployment, and each of its containers, has
// a copy. It fails with a [*ConfigError].
func (c *DeploymentConfig) checkSize(b *Bundle) error {
	if c == nil {
		return nil
	}
	containers := 0
	for i := range b.deployments() {
		containers += len(b.deployments()[i].Spec.Template.Spec.Containers)
	}
	size, copies := len(encoded(c)), len(b.deployments())+containers
	if size*copies <= MaxConfiguredBytes {
		return nil
	}
	return newConfigError(fmt.Sprintf("%s has %d bytes: deployments of the bundle (%d) and their containers (%d) each get a copy, and all copies may have %d; make it smaller",
		KeyDeploymentConfig, size, len(b.deployments()), containers, MaxConfiguredBytes))
}

// apply customizes a deployment that belongs to the caller. It shares what it
// takes over with the configuration.
func (c *DeploymentConfig) apply(deployment *appsv1.Deployment) {
	if c == nil {
		return
	}
	pod := &deployment.Spec.Template.Spec
	for i := range pod.Containers {
		c.applyToContainer(&pod.Containers[i])
	}
	pod.Volumes = override(pod.Volumes, c.Volumes, func(v corev1.Volume) string { return v.Name })
	pod.Tolerations = appendMissing(pod.Tolerations, c.Tolerations)
	if c.NodeSelector != nil {
		pod.NodeSelector = c.NodeSelector
	}
	if c.Affinity != nil {
		pod.Affinity = mergeAffinity(pod.Affinity, c.Affinity)
	}
	addAnnotations(&deployment.ObjectMeta, c.Annotations)
	addAnnotations(&deployment.Spec.Template.ObjectMeta, c.Annotations)
}

func (c *DeploymentConfig) applyToContainer(container *corev1.Container) {
	container.Env = override(container.Env, c.Env, func(v corev1.EnvVar) string { return v.Name })
	container.EnvFrom = appendMissing(container.EnvFrom, c.EnvFrom)
	container.VolumeMounts = override(container.VolumeMounts, c.VolumeMounts, func(m corev1.VolumeMount) string { return m.Name })
	if c.Resources != nil {
		container.Resources = *c.Resources
	}
}

// override puts each of the overriding elements in the place of the last
// existing one of its name, or else at the end.
func override[T any](existing, overriding []T, name func(T) string) []T {
	places := make(map[string]int, len(existing))
	for i, element := range existing {
		places[name(element)] = i
	}
	for _, element := range overriding {
		if i, ok := places[name(element)]; ok {
			existing[i] = element
		} else {
			existing = append(existing, element)
		}
	}
	return existing
}

// appendMissing compares by what elements look like in JSON.
func appendMissing[T any](existing, added []T) []T {
	if len(added) == 0 {
		return existing
	}
	known := make(map[string]struct{}, len(existing)+len(added))
	for _, element := range existing {
		known[encoded(element)] = struct{}{}
	}
	for _, element := range added {
		text := encoded(element)
		if _, found := known[text]; !found {
			known[text] = struct{}{}
			existing = append(existing, element)
		}
	}
	return existing
}

// mergeAffinity returns nil when nothing is left: an empty affinity in the
// configuration takes away that of the bundle.
func mergeAffinity(authored, configured *corev1.Affinity) *corev1.Affinity {
	if *configured == (corev1.Affinity{}) {
		return nil
	}
	merged := corev1.Affinity{}
	if authored != nil {
		merged = *authored
	}
	if node := configured.NodeAffinity; node != nil {
		merged.NodeAffinity = nilIf(node, isEmptyNodeAffinity(node))
	}
	if pod := configured.PodAffinity; pod != nil {
		merged.PodAffinity = nilIf(pod,
			len(pod.RequiredDuringSchedulingIgnoredDuringExecution)+len(pod.PreferredDuringSchedulingIgnoredDuringExecution) == 0)
	}
	if pod := configured.PodAntiAffinity; pod != nil {
		merged.PodAntiAffinity = nilIf(pod,
			len(pod.RequiredDuringSchedulingIgnoredDuringExecution)+len(pod.PreferredDuringSchedulingIgnoredDuringExecution) == 0)
	}
	return nilIf(&merged, merged == corev1.Affinity{})
}

func isEmptyNodeAffinity(affinity *corev1.NodeAffinity) bool {
	required := affinity.RequiredDuringSchedulingIgnoredDuringExecution
	return len(affinity.PreferredDuringSchedulingIgnoredDuringExecution) == 0 &&
		(required == nil || len(required.NodeSelectorTerms) == 0)
}

func nilIf[T any](value *T, condition bool) *T {
	if condition {
		return nil
	}
	return value
}

// addAnnotations leaves those alone that are there: some of them are how an
// operator learns what to watch.
func addAnnotations(metadata *metav1.ObjectMeta, added map[string]string) {
	if len(added) == 0 {
		return
	}
	annotations := maps.Clone(added)
	maps.Copy(annotations, metadata.Annotations)
	metadata.Annotations = annotations
}
