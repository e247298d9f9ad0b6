package hook

import (
	"fmt"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// State is how a run stands.
type State int

// The states of a run.
const (
	Running State = iota
	HasSucceeded
	HasFailed
)

// minKept is how long a Job that has ended is kept at least, so that it can be seen how: nobody
// may look at it before, while the controller is upgraded.
const minKept = time.Hour

// Bounded gives a copy of an object that ends by itself within the deadline. It is kept for a
// while when it has ended, whatever it says of that.
func Bounded(object *unstructured.Unstructured, deadline time.Duration) *unstructured.Unstructured {
	bounded := object.DeepCopy()
	if !IsAwaited(object) {
		return bounded
	}
	atMost(bounded, int64(deadline.Seconds()), "spec", "activeDeadlineSeconds")
	if object.GroupVersionKind().GroupKind() == jobKind {
		atLeast(bounded, int64(minKept.Seconds()), "spec", "ttlSecondsAfterFinished")
	}
	return bounded
}

// atMost lowers a number, or sets one that is not there. What is no number is for the API server
// to refuse.
func atMost(object *unstructured.Unstructured, most int64, path ...string) {
	said, isSet, err := unstructured.NestedInt64(object.Object, path...)
	if err == nil && (!isSet || said > most) {
		_ = unstructured.SetNestedField(object.Object, most, path...)
	}
}

// atLeast raises a number that is there.
func atLeast(object *unstructured.Unstructured, least int64, path ...string) {
	said, isSet, err := unstructured.NestedInt64(object.Object, path...)
	if err == nil && isSet && said < least {
		_ = unstructured.SetNestedField(object.Object, least, path...)
	}
}

// overtime is how much longer than its deadline an object may take to say that it has ended: it
// is others who end it.
const overtime = time.Minute

// StateOf says how the run of an object stands that is there, and why it has failed.
func StateOf(live *unstructured.Unstructured, deadline time.Duration, now time.Time) (state State, why string) {
	switch live.GroupVersionKind().GroupKind() {
	case jobKind:
		state, why = stateOfJob(live)
	case podKind:
		state, why = stateOfPod(live)
	default:
		return HasSucceeded, ""
	}
	if state == Running && now.Sub(live.GetCreationTimestamp().Time) > deadline+overtime {
		return HasFailed, fmt.Sprintf("it has not ended within %s", deadline)
	}
	return state, why
}

func stateOfJob(live *unstructured.Unstructured) (state State, why string) {
	var job batchv1.Job
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &job); err != nil {
		return Running, ""
	}
	for _, condition := range job.Status.Conditions {
		if condition.Status != corev1.ConditionTrue {
			continue
		}
		switch condition.Type {
		case batchv1.JobComplete:
			return HasSucceeded, ""
		case batchv1.JobFailed:
			return HasFailed, reasonOf(condition.Reason, condition.Message)
		case batchv1.JobSuspended, batchv1.JobFailureTarget, batchv1.JobSuccessCriteriaMet:
		}
	}
	return Running, ""
}

func stateOfPod(live *unstructured.Unstructured) (state State, why string) {
	var pod corev1.Pod
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(live.Object, &pod); err != nil {
		return Running, ""
	}
	switch pod.Status.Phase {
	case corev1.PodSucceeded:
		return HasSucceeded, ""
	case corev1.PodFailed:
		for _, container := range pod.Status.ContainerStatuses {
			if ended := container.State.Terminated; ended != nil && ended.ExitCode != 0 {
				return HasFailed, fmt.Sprintf("container %s has ended with %d", excerpt.Quote(container.Name), ended.ExitCode)
			}
		}
		return HasFailed, reasonOf(pod.Status.Reason, pod.Status.Message)
	case corev1.PodPending, corev1.PodRunning, corev1.PodUnknown:
	}
	return Running, ""
}

func reasonOf(reason, message string) string {
	switch {
	case reason == "" && message == "":
		return "it does not say why"
	case reason == "" || message == "":
		return excerpt.Line(reason+message, maxWhy)
	}
	return excerpt.Line(reason+": "+message, maxWhy)
}

// maxWhy is how much an object may say of why it has failed, in bytes.
const maxWhy = 300

// Next is how long to wait with the next look at a run that began a while ago: the longer it
// takes, the more seldom.
func Next(since time.Duration) time.Duration {
	return min(max(since/10, minLook), maxLook)
}

const (
	minLook = time.Second
	maxLook = 15 * time.Second
)
