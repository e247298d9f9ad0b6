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

// startTime is the time in which a new workload other than a Deployment counts as rolling out, while its first pods start.
// The default progressDeadlineSeconds of Deployments is the same.
const startTime = 10 * time.Minute

// readyTime is the time in which a new custom resource that is not ready counts as rolling out.
const readyTime = 30 * time.Second

// replicas contains the numbers that decide about the health of a workload.
type replicas struct {
	wanted, current, available, ready int32

	// updated is the number of pods with the newest pod template, and updatesWanted the number that should have it.
	updated, updatesWanted int32

	// waits is set if the rollout does not begin before the pods of the old version are ready.
	waits bool
}

// workload returns the health of a workload. It is available if all replicas are, or at least one during a rollout.
func (r replicas) workload(key object.Key, meta metav1.ObjectMeta, selector *metav1.LabelSelector) Workload {
	workload := Workload{
		Key: key, Available: metav1.ConditionTrue, Idle: r.available == 0,
		Answers: r.ready > 0 && r.updated >= r.updatesWanted,
	}
	switch {
	case r.waits:
		workload.Reason = "its rollout waits for pods of the old version that are not ready: delete them if they do not become ready"
	case r.updated < r.updatesWanted:
		workload.RollingOut = true
		workload.Reason = fmt.Sprintf("%d of %d replicas are of the new version", r.updated, r.updatesWanted)
	case r.current > r.wanted:
		workload.RollingOut = true
		workload.Reason = fmt.Sprintf("replicas to be deleted: %d", r.current-r.wanted)
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

// notObserved returns the health of a workload whose status is of an earlier generation.
func notObserved(key object.Key) Workload {
	return Workload{Key: key, Available: metav1.ConditionUnknown, RollingOut: true, Reason: "its last change has not been taken up yet"}
}

// Starting sets RollingOut for workloads without a revision history whose first pods may still be starting, and for custom
// resources that were just created. left is the time until the first of them no longer counts as starting; zero if there
// is none.
func Starting(workloads []Workload, now time.Time) (started []Workload, left time.Duration) {
	for i := range workloads {
		one := &workloads[i]
		span := startTime
		if HasConditions(one.Key.GroupKind) {
			span = readyTime
		}
		rest := one.Created.Add(span).Sub(now)
		if one.Created.IsZero() || one.Stuck || one.Refused || rest <= 0 {
			continue
		}
		one.RollingOut = true
		if left == 0 || rest < left {
			left = rest
		}
	}
	return workloads, left
}

// OfStatefulSet returns the health of a StatefulSet. Its controller replaces one pod at a time, and none while another pod
// is not ready. With a partition, only the replicas from there on have to be updated;
// with the strategy OnDelete, none.
func OfStatefulSet(key object.Key, set *appsv1.StatefulSet) Workload {
	status, update := set.Status, set.Spec.UpdateStrategy
	if status.ObservedGeneration < set.Generation {
		return notObserved(key)
	}
	wanted := ptr.Deref(set.Spec.Replicas, 1)
	counts := replicas{wanted: wanted, current: status.Replicas, available: status.AvailableReplicas, ready: status.ReadyReplicas, updated: status.UpdatedReplicas, updatesWanted: wanted}
	if status.UpdateRevision == status.CurrentRevision {
		counts.updated = counts.updatesWanted // the controller counts none of its pods in some versions
	}
	switch {
	case update.Type == appsv1.OnDeleteStatefulSetStrategyType:
		counts.updatesWanted = 0
	case update.RollingUpdate != nil:
		counts.updatesWanted = max(wanted-ptr.Deref(update.RollingUpdate.Partition, 0), 0)
	}
	counts.waits = counts.updated == 0 && counts.updatesWanted > 0 && status.ReadyReplicas < status.Replicas
	return counts.workload(key, set.ObjectMeta, set.Spec.Selector)
}

// OfDaemonSet returns the health of a DaemonSet. A DaemonSet that selects no node is available.
func OfDaemonSet(key object.Key, set *appsv1.DaemonSet) Workload {
	status := set.Status
	if status.ObservedGeneration < set.Generation {
		return notObserved(key)
	}
	counts := replicas{
		wanted: status.DesiredNumberScheduled, current: status.CurrentNumberScheduled, available: status.NumberAvailable, ready: status.NumberReady,
		updated: status.UpdatedNumberScheduled, updatesWanted: status.DesiredNumberScheduled,
	}
	if set.Spec.UpdateStrategy.Type == appsv1.OnDeleteDaemonSetStrategyType {
		counts.updatesWanted = 0
	}
	return counts.workload(key, set.ObjectMeta, set.Spec.Selector)
}

// OfReplicaSet returns the health of a ReplicaSet, which never updates its pods.
func OfReplicaSet(key object.Key, set *appsv1.ReplicaSet) Workload {
	if set.Status.ObservedGeneration < set.Generation {
		return notObserved(key)
	}
	counts := replicas{wanted: ptr.Deref(set.Spec.Replicas, 1), current: set.Status.Replicas, available: set.Status.AvailableReplicas}
	workload := counts.workload(key, set.ObjectMeta, set.Spec.Selector)
	for _, condition := range set.Status.Conditions {
		if condition.Type == appsv1.ReplicaSetReplicaFailure && condition.Status == corev1.ConditionTrue {
			return workload.refused(condition.Message)
		}
	}
	return workload
}

// OfReplicationController returns the health of a ReplicationController, which never updates its pods.
func OfReplicationController(key object.Key, controller *corev1.ReplicationController) Workload {
	if controller.Status.ObservedGeneration < controller.Generation {
		return notObserved(key)
	}
	counts := replicas{
		wanted: ptr.Deref(controller.Spec.Replicas, 1), current: controller.Status.Replicas, available: controller.Status.AvailableReplicas,
	}
	workload := counts.workload(key, controller.ObjectMeta, &metav1.LabelSelector{MatchLabels: controller.Spec.Selector})
	for _, condition := range controller.Status.Conditions {
		if condition.Type == corev1.ReplicationControllerReplicaFailure && condition.Status == corev1.ConditionTrue {
			return workload.refused(condition.Message)
		}
	}
	return workload
}

// OfJob returns the health of a Job. A running Job counts as available: only a failure is a problem.
func OfJob(key object.Key, job *batchv1.Job) Workload {
	workload := Workload{Key: key, Available: metav1.ConditionTrue, Idle: true}
	for _, condition := range job.Status.Conditions {
		isTrue := condition.Status == corev1.ConditionTrue
		if isTrue && (condition.Type == batchv1.JobFailed || condition.Type == batchv1.JobComplete) {
			workload.Ended = job.Spec.TTLSecondsAfterFinished != nil
		}
		if isTrue && condition.Type == batchv1.JobFailed {
			workload.Available, workload.Stuck, workload.Idle = metav1.ConditionFalse, true, false
			workload.Reason = newCause("the Job has failed: "+condition.Reason, condition.Message).Text
			workload.Selector = selectorOf(job.Spec.Selector)
		}
	}
	return workload
}

// OfPod returns the health of a pod without an owner. Nothing replaces such a pod when it ends.
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
