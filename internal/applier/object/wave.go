package object

import (
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// WaveOf is the position of a kind in the order of writing. Objects of one wave
// are written at the same time; a wave starts when the one before it is done.
// What others refer to comes first, webhooks come after what serves them.
func WaveOf(kind schema.GroupKind) int {
	switch kind.Kind {
	case "PriorityClass", "Namespace", "NetworkPolicy", "ResourceQuota", "LimitRange",
		"PodDisruptionBudget", "ServiceAccount", "Secret", "ConfigMap":
		return 0
	case "CustomResourceDefinition":
		return 1
	case "ClusterRole", "Role":
		return 2
	case "ClusterRoleBinding", "RoleBinding":
		return 3
	case "Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod":
		return 5
	case "ValidatingWebhookConfiguration", "MutatingWebhookConfiguration", "APIService":
		return 6
	default:
		return 4
	}
}
