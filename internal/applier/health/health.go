package health

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Workload is how an object of the release that runs something is doing, or any object
// that is on its way out.
type Workload struct {
	Key object.Key

	// Available says whether it serves, if only with pods of the last revision.
	Available metav1.ConditionStatus

	// RollingOut says that it is on its way to its last change.
	RollingOut bool

	// Stuck says that a rollout has begun and gets no further.
	Stuck bool

	// Idle says that it is available and has no pod that serves, as one that is scaled to zero.
	Idle bool

	// Reason is why it is not available or not rolled out, or what it lacks
	// although it is, in one line.
	Reason string

	// Since is when it came to be available or not or, if that was later, when its
	// rollout was over; less the time for which its pods had to be ready before. It is by
	// the clock of the cluster, to the second, and zero if the cluster does not say.
	Since time.Time

	// Recovered says that it became available after its rollout was over: there was a
	// time in between when it was not.
	Recovered bool

	// Selector selects its pods. It is empty unless they may tell why it does not serve.
	Selector string

	// Created is the time at which the object was created. It is set for a workload that is not available, and whose
	// status does not show whether it ever was.
	Created time.Time
}

// Of gives the workloads among live objects, as they were when the objects were read.
func Of(live map[object.Key]*unstructured.Unstructured) map[object.Key]Workload {
	found := map[object.Key]Workload{}
	for key, obj := range live {
		judge, hasStatus := judges[key.GroupKind]
		switch {
		case obj.GetDeletionTimestamp() != nil:
			found[key] = terminating(key, obj)
		case hasStatus:
			found[key] = judge.ofObject(key, obj)
		}
	}
	return found
}

// terminating is an object that somebody has deleted and that is still there. It
// counts whatever its kind: a definition takes its custom resources along.
func terminating(key object.Key, object *unstructured.Unstructured) Workload {
	return Workload{Key: key, Available: metav1.ConditionFalse, Reason: fmt.Sprintf(
		"it was deleted, and is put back when it is gone, for which it waits for finalizers [%s]",
		strings.Join(object.GetFinalizers(), " "))}
}

// Missing is the workload of an object that was deleted.
func Missing(key object.Key) Workload {
	return Workload{Key: key, Available: metav1.ConditionFalse, Reason: "it does not exist"}
}

// Unseen gives workloads that may have changed since they were seen.
func Unseen(last []Workload) []Workload {
	unseen := make([]Workload, 0, len(last))
	for _, workload := range last {
		unseen = append(unseen, Workload{
			Key: workload.Key, Available: metav1.ConditionUnknown,
			Reason: "it cannot be looked at: give the ServiceAccount get, list and watch for it",
		})
	}
	return unseen
}

// OfDeployment follows the rules of kubectl rollout status, and those of the cluster
// where it knows more: a rollout that is over stays over when pods go away later.
func OfDeployment(key object.Key, deployment *appsv1.Deployment) Workload {
	if deployment.Status.ObservedGeneration < deployment.Generation {
		return notObserved(key)
	}
	workload := Workload{Key: key, Available: metav1.ConditionUnknown}
	available := conditionOf(deployment, appsv1.DeploymentAvailable)
	progressing := conditionOf(deployment, appsv1.DeploymentProgressing)
	failing := conditionOf(deployment, appsv1.DeploymentReplicaFailure)
	if available.Status != "" {
		workload.Available = metav1.ConditionStatus(available.Status)
	}
	workload.Idle = isIdle(deployment, available)
	lacking := lackingReplicas(deployment)
	paused := deployment.Spec.Paused && lacking != ""
	workload.Stuck = progressing.Status == corev1.ConditionFalse || paused
	workload.RollingOut = lacking != "" && !workload.Stuck && !isRolledOut(deployment, progressing)
	switch {
	case failing.Status == corev1.ConditionTrue:
		workload.Reason = failing.Message
	case paused:
		workload.Reason = "it is paused, until `kubectl rollout resume`: " + lacking
	case workload.Stuck:
		workload.Reason = progressing.Message
	case lacking != "":
		workload.Reason = lacking
	case workload.Available != metav1.ConditionTrue:
		workload.Reason = cmp.Or(available.Message, "its status does not say whether it is available")
	}
	workload.Since, workload.Recovered = since(deployment, available, progressing)
	if workload.Available == metav1.ConditionFalse || workload.Stuck && !paused {
		workload.Selector = selectorOf(deployment.Spec.Selector)
	}
	return workload
}

func isIdle(deployment *appsv1.Deployment, available appsv1.DeploymentCondition) bool {
	return available.Status == corev1.ConditionTrue && deployment.Status.AvailableReplicas == 0
}

// since is the later one of two times: when the Deployment became available or not, and
// when its rollout was over. The cluster keeps the latter as the update of a condition that
// changes only its reason.
func since(deployment *appsv1.Deployment, available, progressing appsv1.DeploymentCondition) (at time.Time, recovered bool) {
	changed := available.LastTransitionTime.UTC()
	if progressing.Reason != reasonRolledOut {
		return changed, false
	}
	rolledOut := progressing.LastUpdateTime.UTC()
	if changed.After(rolledOut) {
		return changed.Add(-minReady(deployment)), available.Status == corev1.ConditionTrue
	}
	return rolledOut.Add(-minReady(deployment)), false
}

// minReady is how long a pod has to be ready before the cluster counts it as available.
func minReady(deployment *appsv1.Deployment) time.Duration {
	return time.Duration(deployment.Spec.MinReadySeconds) * time.Second
}

// selectorOf is empty for a selector of all pods, or of none.
func selectorOf(of *metav1.LabelSelector) string {
	selector, err := metav1.LabelSelectorAsSelector(of)
	if err != nil || selector.Empty() {
		return ""
	}
	return selector.String()
}

// reasonRolledOut is that of the condition Progressing of a Deployment that has
// come to the end of a rollout. It stays until the next one.
const reasonRolledOut = "NewReplicaSetAvailable"

// isRolledOut says that the cluster has seen all replicas of the last change serve.
// Its deadline does not run any more, whatever becomes of them.
func isRolledOut(deployment *appsv1.Deployment, progressing appsv1.DeploymentCondition) bool {
	return progressing.Reason == reasonRolledOut && deployment.Status.Replicas == deployment.Status.UpdatedReplicas
}

// lackingReplicas says which replicas are not as wanted; nothing if all are.
func lackingReplicas(deployment *appsv1.Deployment) string {
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

// Sorted gives workloads in the order of their keys.
func Sorted(found map[object.Key]Workload) []Workload {
	return slices.SortedFunc(maps.Values(found), func(a, b Workload) int { return a.Key.Compare(b.Key) })
}
