package health

import (
	"fmt"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/utils/ptr"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// startTime bounds the start of the first pods of a workload without a revision history. Deployments have the same
// limit by default.
const startTime = 10 * time.Minute

// replicas are the numbers by which a workload is judged.
type replicas struct {
	wanted, current, available int32

	// updated have the last revision of the pod template, as updatesWanted are to have.
	updated, updatesWanted int32
}

// workload is available if all replicas are, or if some are during a rollout.
func (r replicas) workload(key object.Key, meta metav1.ObjectMeta, selector *metav1.LabelSelector) Workload {
	workload := Workload{Key: key, Available: metav1.ConditionTrue, Idle: r.available == 0}
	switch {
	case r.updated < r.updatesWanted:
		workload.RollingOut = true
		workload.Reason = fmt.Sprintf("%d of %d replicas are of the new version", r.updated, r.updatesWanted)
	case r.current > r.wanted:
		workload.RollingOut = true
		workload.Reason = fmt.Sprintf("replicas that are to go: %d", r.current-r.wanted)
	case r.available < r.wanted:
		workload.Reason = fmt.Sprintf("%d of %d replicas are available", r.available, r.wanted)
	}
	if r.available < r.wanted && (!workload.RollingOut || r.available == 0) {
		workload.Available, workload.Idle = metav1.ConditionFalse, false
		workload.Selector = selectorOf(selector)
		workload.Created = meta.CreationTimestamp.UTC()
	}
	return workload
}

// notObserved is a workload whose status is of an earlier generation.
func notObserved(key object.Key) Workload {
	return Workload{Key: key, Available: metav1.ConditionUnknown, RollingOut: true, Reason: "its last change has not been taken up yet"}
}

// Starting sets RollingOut for workloads without a revision history whose first pods may still be starting.
func Starting(workloads []Workload, now time.Time) []Workload {
	for i := range workloads {
		if created := workloads[i].Created; !created.IsZero() && !workloads[i].Stuck && now.Sub(created) < startTime {
			workloads[i].RollingOut = true
		}
	}
	return workloads
}

// OfStatefulSet judges a StatefulSet. With a partition, only the replicas beyond it are updated; with the strategy
// OnDelete, none is.
func OfStatefulSet(key object.Key, set *appsv1.StatefulSet) Workload {
	status, update := set.Status, set.Spec.UpdateStrategy
	if status.ObservedGeneration < set.Generation {
		return notObserved(key)
	}
	wanted := ptr.Deref(set.Spec.Replicas, 1)
	counts := replicas{wanted: wanted, current: status.Replicas, available: status.AvailableReplicas, updated: status.UpdatedReplicas, updatesWanted: wanted}
	if status.UpdateRevision == status.CurrentRevision {
		counts.updated = counts.updatesWanted // the controller counts none of its pods in some versions
	}
	switch {
	case update.Type == appsv1.OnDeleteStatefulSetStrategyType:
		counts.updatesWanted = 0
	case update.RollingUpdate != nil:
		counts.updatesWanted = max(wanted-ptr.Deref(update.RollingUpdate.Partition, 0), 0)
	}
	return counts.workload(key, set.ObjectMeta, set.Spec.Selector)
}

// OfDaemonSet judges a DaemonSet. Without a node for it, there is nothing to wait for.
func OfDaemonSet(key object.Key, set *appsv1.DaemonSet) Workload {
	status := set.Status
	if status.ObservedGeneration < set.Generation {
		return notObserved(key)
	}
	counts := replicas{
		wanted: status.DesiredNumberScheduled, current: status.CurrentNumberScheduled, available: status.NumberAvailable,
		updated: status.UpdatedNumberScheduled, updatesWanted: status.DesiredNumberScheduled,
	}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		counts.updatesWanted = 0
	}
	return counts.workload(key, set.ObjectMeta, set.Spec.Selector)
}

// OfReplicaSet judges a ReplicaSet, which never updates its pods.
func OfReplicaSet(key object.Key, set *appsv1.ReplicaSet) Workload {
	if set.Status.ObservedGeneration < set.Generation {
		return notObserved(key)
	}
	counts := replicas{wanted: ptr.Deref(set.Spec.Replicas, 1), current: set.Status.Replicas, available: set.Status.AvailableReplicas}
	return counts.workload(key, set.ObjectMeta, set.Spec.Selector)
}

// OfReplicationController judges a ReplicationController, which never updates its pods.
func OfReplicationController(key object.Key, controller *corev1.ReplicationController) Workload {
	if controller.Status.ObservedGeneration < controller.Generation {
		return notObserved(key)
	}
	counts := replicas{
		wanted: ptr.Deref(controller.Spec.Replicas, 1), current: controller.Status.Replicas, available: controller.Status.AvailableReplicas,
	}
	return counts.workload(key, controller.ObjectMeta, &metav1.LabelSelector{MatchLabels: controller.Spec.Selector})
}

// OfJob judges a Job. One that still runs counts as available: only its failure is a problem.
func OfJob(key object.Key, job *batchv1.Job) Workload {
	workload := Workload{Key: key, Available: metav1.ConditionTrue, Idle: true}
	for _, condition := range job.Status.Conditions {
		if condition.Type == batchv1.JobFailed && condition.Status == corev1.ConditionTrue {
			workload.Available, workload.Stuck, workload.Idle = metav1.ConditionFalse, true, false
			workload.Reason = newCause("the Job has failed: "+condition.Reason, condition.Message).Text
			workload.Selector = selectorOf(job.Spec.Selector)
		}
	}
	return workload
}

// OfPod judges a pod that nothing owns, so that nothing replaces it when it ends.
func OfPod(key object.Key, pod *corev1.Pod) Workload {
	workload := Workload{Key: key, Available: metav1.ConditionFalse, Created: pod.CreationTimestamp.UTC()}
	seen := Pod{Status: pod.Status}
	seen.Metadata.Name, seen.Metadata.UID = pod.Name, string(pod.UID)
	cause := ofPod(seen, time.Time{}).Text
	switch {
	case pod.Status.Phase == corev1.PodSucceeded:
		return Workload{Key: key, Available: metav1.ConditionTrue, Idle: true}
	case pod.Status.Phase == corev1.PodFailed:
		workload.Stuck, workload.Reason = true, "it has failed"
	case isReady(pod):
		return Workload{Key: key, Available: metav1.ConditionTrue}
	default:
		workload.Reason = "it is not ready"
	}
	if cause != "" {
		workload.Reason += ": " + cause
	}
	return workload
}

func isReady(pod *corev1.Pod) bool {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodReady {
			return condition.Status == corev1.ConditionTrue
		}
	}
	return false
}
