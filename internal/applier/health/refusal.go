package health

import (
	"regexp"
	"strings"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// maxRefusal bounds the answer of the API server to the creation of pods in a message, in bytes. PodSecurity lists each
// field of each container.
const maxRefusal = 560

// creating matches the prefix of controllers in a message about a pod that cannot be created, and forbidden the prefix
// of the API server. creatingReplicaSet matches both in a message about a ReplicaSet.
var (
	creating  = regexp.MustCompile(`^(?:\(combined from similar events\): )?(Error creating: |[Cc]reate Pod \S+ in StatefulSet \S+ failed error: )`)
	forbidden = regexp.MustCompile(`^pods? "[^"]*" is forbidden: `)

	creatingReplicaSet = regexp.MustCompile(`^Failed to create new replica set "[^"]*": (replicasets\.apps "[^"]*" is forbidden: )?`)
)

// refusalOf returns why the pods of a workload cannot be created, without the names of pods.
func refusalOf(name, message string) string {
	if ofWebhook := ofPodCreation(message); ofWebhook != message {
		return ofWebhook
	}
	message = withoutGenerated(name, creating.ReplaceAllString(message, ""))
	text := "its pods cannot be created: " + message
	if said := forbidden.ReplaceAllString(message, ""); said != message {
		text = "its pods are forbidden: " + said
	}
	if said := creatingReplicaSet.ReplaceAllString(message, ""); said != message {
		text = "its ReplicaSet cannot be created: " + said
	}
	return excerpt.Line(excerpt.Scrub(text), maxRefusal)
}

// withoutGenerated replaces the names that the cluster generates from the name of a workload.
func withoutGenerated(name, text string) string {
	generated := regexp.MustCompile(regexp.QuoteMeta(name) + "-" + letters + "{5,10}(-" + letters + "{5}\\b|-|\\b)")
	return generated.ReplaceAllString(text, "…")
}

// refused returns the workload as one whose pods the API server refuses. It counts as rolling out only if it is
// available: the cluster repeats the same request, so waiting does not help.
func (w Workload) refused(message string) Workload {
	w.Refused, w.Reason = true, refusalOf(w.Key.Name, message)
	w.RollingOut = w.RollingOut && w.Available == metav1.ConditionTrue
	return w
}

// With returns the workload with the cause in its reason.
func (w Workload) With(cause Cause) Workload {
	isRefusal := cause.Reason == reasonFailedCreate
	if cause.Text == "" || isRefusal && w.Refused { // the reason contains it
		return w
	}
	if isRefusal && w.Available == metav1.ConditionFalse {
		w.RollingOut = false
	}
	w.Reason = strings.TrimSuffix(w.Reason, ".") + ": " + cause.Text
	return w
}

// reasonFailedCreate is the reason of events about pods that cannot be created.
const reasonFailedCreate = "FailedCreate"
