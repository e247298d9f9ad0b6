package applier

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Workload is how an object of the release that runs something is doing.
type Workload struct {
	Key ObjectKey

	// Available says whether it serves, if only with pods of the last revision.
	Available metav1.ConditionStatus

	// RolledOut says that nothing but pods of this revision is left, and that all
	// of them serve.
	RolledOut bool

	// Stuck says that the cluster has given up on the rollout.
	Stuck bool

	// Reason is why it is not available or not rolled out, in one line.
	Reason string
}

var deploymentKind = schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}

// workloads are those among the objects; what they say is as old as the objects.
func workloads(live map[ObjectKey]*unstructured.Unstructured) map[ObjectKey]Workload {
	found := map[ObjectKey]Workload{}
	for key, object := range live {
		if key.GroupKind == deploymentKind {
			found[key] = workloadOf(key, object)
		}
	}
	return found
}

func workloadOf(key ObjectKey, object *unstructured.Unstructured) Workload {
	deployment := &appsv1.Deployment{}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(object.Object, deployment); err != nil {
		return Workload{Key: key, Available: metav1.ConditionUnknown, Reason: "its status cannot be read"}
	}
	return healthOf(key, deployment)
}

// healthOf follows the rules of kubectl rollout status.
func healthOf(key ObjectKey, deployment *appsv1.Deployment) Workload {
	workload := Workload{Key: key, Available: metav1.ConditionUnknown}
	if deployment.Status.ObservedGeneration < deployment.Generation {
		workload.Reason = "its last change has not been taken up yet"
		return workload
	}
	available := conditionOf(deployment, appsv1.DeploymentAvailable)
	progressing := conditionOf(deployment, appsv1.DeploymentProgressing)
	failing := conditionOf(deployment, appsv1.DeploymentReplicaFailure)
	if available.Status != "" {
		workload.Available = metav1.ConditionStatus(available.Status)
	}
	rollout := rolloutOf(deployment)
	workload.RolledOut = rollout == ""
	workload.Stuck = progressing.Status == corev1.ConditionFalse
	switch {
	case failing.Status == corev1.ConditionTrue:
		workload.Reason = failing.Message
	case workload.Stuck:
		workload.Reason = progressing.Message
	case rollout != "":
		workload.Reason = rollout
	case workload.Available != metav1.ConditionTrue:
		workload.Reason = cmp.Or(available.Message, "its status does not say whether it is available")
	}
	return workload
}

// rolloutOf is what a rollout waits for; nothing if it is over.
func rolloutOf(deployment *appsv1.Deployment) string {
	wanted, status := int32(1), deployment.Status
	if deployment.Spec.Replicas != nil {
		wanted = *deployment.Spec.Replicas
	}
	switch {
	case status.UpdatedReplicas < wanted:
		return fmt.Sprintf("%d of %d replicas are of the new version", status.UpdatedReplicas, wanted)
	case status.Replicas > status.UpdatedReplicas:
		return fmt.Sprintf("replicas of the old version that are left: %d", status.Replicas-status.UpdatedReplicas)
	case status.AvailableReplicas < status.UpdatedReplicas:
		return fmt.Sprintf("%d of %d replicas are available", status.AvailableReplicas, status.UpdatedReplicas)
	}
	return ""
}

// conditionOf is zero if there is no such condition.
func conditionOf(deployment *appsv1.Deployment, kind appsv1.DeploymentConditionType) appsv1.DeploymentCondition {
	for _, condition := range deployment.Status.Conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return appsv1.DeploymentCondition{}
}

// sortedWorkloads in the order of their names.
func sortedWorkloads(found map[ObjectKey]Workload) []Workload {
	return slices.SortedFunc(maps.Values(found), func(a, b Workload) int { return compareKeys(a.Key, b.Key) })
}
