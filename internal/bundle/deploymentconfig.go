package bundle

import (
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
)

const (
	keyWatchNamespace   = "watchNamespace"
	keyDeploymentConfig = "deploymentConfig"
)

// DeploymentConfig customizes the deployments of a bundle.
type DeploymentConfig struct {
	NodeSelector map[string]string            `json:"nodeSelector,omitempty"`
	Tolerations  []corev1.Toleration          `json:"tolerations,omitempty"`
	Resources    *corev1.ResourceRequirements `json:"resources,omitempty"`
	EnvFrom      []corev1.EnvFromSource       `json:"envFrom,omitempty"`
	Env          []corev1.EnvVar              `json:"env,omitempty"`
	Volumes      []corev1.Volume              `json:"volumes,omitempty"`
	VolumeMounts []corev1.VolumeMount         `json:"volumeMounts,omitempty"`
	Affinity     *corev1.Affinity             `json:"affinity,omitempty"`
	Annotations  map[string]string            `json:"annotations,omitempty"`
}

func (c *DeploymentConfig) apply(*appsv1.Deployment) {}
