package health

import (
	"cmp"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Pod is what is read of a pod.
type Pod struct {
	Metadata struct {
		Name              string       `json:"name"`
		UID               string       `json:"uid"`
		DeletionTimestamp *metav1.Time `json:"deletionTimestamp"`
	} `json:"metadata"`
	Status corev1.PodStatus `json:"status"`
}

// Cause is why pods do not serve, in one line. It is the same as long as the reason is:
// without the names of pods, numbers of tries and times. The zero value is that nothing is
// known.
type Cause struct {
	// Reason is that of the cluster, such as CrashLoopBackOff.
	Reason string

	// Text is the reason and what there is to say of it. It has nothing that a program in
	// a pod has written.
	Text string

	// Vague says that the pods only tell what they wait for, and not why.
	Vague bool
}

// maxCause is how much of a message there is for a cause, in bytes.
const maxCause = 240

// newCause puts a reason and what is said of it together.
func newCause(reason, said string) Cause {
	text := reason
	if said != "" {
		text += ": " + said
	}
	return Cause{Reason: reason, Text: excerpt.Line(excerpt.Scrub(text), maxCause)}
}

// CauseOf is why pods of one workload do not serve. There can be as many causes as pods;
// it is the one of which most is known, and of several the first by its text.
func CauseOf(pods []Pod, now time.Time) Cause {
	var found []Cause
	for _, pod := range pods {
		if cause := ofPod(pod, now); cause.Text != "" {
			found = append(found, cause)
		}
	}
	if len(found) == 0 {
		return Cause{}
	}
	return slices.MinFunc(found, func(a, b Cause) int {
		if a.Vague != b.Vague {
			if b.Vague {
				return -1
			}
			return 1
		}
		return strings.Compare(a.Text, b.Text)
	})
}

// Keep gives the cause that is to be told after another one was. The cluster alternates
// between the failure of a try and the wait for the next one, and some versions have
// details only of the former.
func (c Cause) Keep(before Cause) Cause {
	if c.Reason == before.Reason && strings.HasPrefix(before.Text, c.Text) {
		return before
	}
	return c
}

func ofPod(pod Pod, now time.Time) Cause {
	if pod.Metadata.DeletionTimestamp != nil || pod.Status.Phase == corev1.PodSucceeded {
		return Cause{}
	}
	if pod.Status.Phase == corev1.PodFailed && pod.Status.Reason != "" {
		return newCause(pod.Status.Reason, withoutNames(pod.Status.Message, pod.Metadata.Name, pod.Metadata.UID))
	}
	for _, status := range slices.Concat(pod.Status.InitContainerStatuses, pod.Status.ContainerStatuses) {
		if cause := ofContainer(status, pod, now); cause.Text != "" {
			return cause
		}
	}
	return ofConditions(pod)
}

// ofContainer is empty for a container that is as it should be, or waits for another one.
func ofContainer(status corev1.ContainerStatus, pod Pod, now time.Time) Cause {
	name := "container " + excerpt.Quote(status.Name)
	last := cmp.Or(status.State.Terminated, status.LastTerminationState.Terminated)
	waiting, running := status.State.Waiting, status.State.Running
	switch {
	case waiting != nil && isPull(waiting.Reason):
		return newCause(reasonPull, strings.TrimSuffix("image "+excerpt.Quote(status.Image)+": "+pullDetail(waiting, status.Image), ": "))
	case waiting != nil && waiting.Reason == reasonCrash, hasCrashed(status, now):
		return newCause(reasonCrash, name+" "+endOf(last, pod))
	case waiting != nil && waiting.Reason == "ContainerCreating":
		return Cause{Reason: waiting.Reason, Text: "ContainerCreating: " + name, Vague: true}
	case waiting != nil && waiting.Reason != "" && waiting.Reason != "PodInitializing":
		return newCause(waiting.Reason, strings.Trim(name+": "+withoutNames(waiting.Message, pod.Metadata.Name, pod.Metadata.UID), ": "))
	case running != nil && !status.Ready && isInit(status, pod):
		return Cause{Reason: "PodInitializing", Text: "PodInitializing: " + name + " runs", Vague: true}
	case running != nil && !status.Ready:
		return Cause{Reason: "ContainersNotReady", Text: name + " runs and is not ready", Vague: true}
	}
	return Cause{}
}

func isInit(status corev1.ContainerStatus, pod Pod) bool {
	return slices.ContainsFunc(pod.Status.InitContainerStatuses, func(s corev1.ContainerStatus) bool { return s.Name == status.Name })
}

const (
	reasonPull  = "ImagePullBackOff"
	reasonCrash = "CrashLoopBackOff"
)

// isPull says that an image cannot be pulled. The reason is that of the try or of the wait
// for the next one.
func isPull(reason string) bool {
	return slices.Contains([]string{reasonPull, "ErrImagePull", "RegistryUnavailable", "SignatureValidationFailed"}, reason)
}

// pullDetail is what the runtime says, which the wait for the next try has behind its own
// text, or does not have.
func pullDetail(waiting *corev1.ContainerStateWaiting, image string) string {
	text := waiting.Message
	if waiting.Reason == reasonPull {
		_, text, _ = strings.Cut(text, ": ErrImagePull: ")
	}
	if _, after, found := strings.Cut(text, " desc = "); found {
		text = after
	}
	if image == "" {
		return text
	}
	return strings.ReplaceAll(text, image, "…")
}

// backOffReset is how long a container has to run for its next end to be the first again,
// as the kubelet counts.
const backOffReset = 10 * time.Minute

// hasCrashed says that a container has just ended, or that it was started again and is not
// ready: between two tries it can be either.
func hasCrashed(status corev1.ContainerStatus, now time.Time) bool {
	if ended := status.State.Terminated; ended != nil {
		return ended.ExitCode != 0 || status.RestartCount > 0
	}
	running := status.State.Running
	return running != nil && !status.Ready && status.LastTerminationState.Terminated != nil &&
		now.Sub(running.StartedAt.Time) < backOffReset
}

// endOf says how a container has ended. What the program has left as its last words is not
// among it: that can be anything, and another thing each time.
func endOf(last *corev1.ContainerStateTerminated, pod Pod) string {
	if last == nil {
		return "ends again and again"
	}
	text := fmt.Sprintf("ended with exit code %d", last.ExitCode)
	switch last.Reason {
	case "", "Error", "Completed":
	case "StartError", "ContainerCannotRun": // the runtime says why
		text = fmt.Sprintf("cannot be started: %s", withoutNames(last.Message, pod.Metadata.Name, pod.Metadata.UID))
	default:
		text += ", " + last.Reason
	}
	return text
}

// ofConditions is about a pod of which no container says anything.
func ofConditions(pod Pod) Cause {
	for _, condition := range pod.Status.Conditions {
		if condition.Type == corev1.PodScheduled && condition.Status == corev1.ConditionFalse {
			said, _, _ := strings.Cut(condition.Message, ". ") // what follows is of no help
			return newCause(cmp.Or(condition.Reason, corev1.PodReasonUnschedulable), said)
		}
	}
	return Cause{}
}

// digests are of containers and images; those of images say so.
var digests = regexp.MustCompile(`(sha256:)?[0-9a-f]{32,}`)

// withoutNames is a text without what is another one with each pod or container.
func withoutNames(text, name, uid string) string {
	for _, own := range []string{name, uid} {
		if own != "" {
			text = strings.ReplaceAll(text, own, "…")
		}
	}
	return digests.ReplaceAllStringFunc(text, func(digest string) string {
		if strings.HasPrefix(digest, "sha256:") {
			return digest
		}
		return "…"
	})
}
