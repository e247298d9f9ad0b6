package health

import (
	"cmp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Event is what is read of an Event of the API.
type Event struct {
	Involved struct {
		Kind string `json:"kind"`
		Name string `json:"name"`
		UID  string `json:"uid"`
	} `json:"involvedObject"`
	Reason   string           `json:"reason"`
	Message  string           `json:"message"`
	EventAt  metav1.MicroTime `json:"eventTime"`
	LastSeen metav1.Time      `json:"lastTimestamp"`
	Series   *struct {
		LastSeen metav1.MicroTime `json:"lastObservedTime"`
	} `json:"series"`
}

// at is when it was seen last: where it is kept depends on who has written it.
func (e Event) at() time.Time {
	at := e.LastSeen.Time
	if e.EventAt.After(at) {
		at = e.EventAt.Time
	}
	if e.Series != nil && e.Series.LastSeen.After(at) {
		at = e.Series.LastSeen.Time
	}
	return at
}

// telling are the reasons of events that tell why pods do not serve, those first that tell
// most of it.
var telling = []string{
	"FailedCreate", "FailedScheduling", "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "Failed", "BackOff", "Unhealthy",
}

// freshEvent is for how long an event says how it is now. One that goes on is repeated
// within that time: the kubelet waits for five minutes at most between two tries.
const freshEvent = 10 * time.Minute

// CauseOfEvents is why pods of a Deployment do not serve, as far as events tell: those
// about its ReplicaSets and about their pods.
func CauseOfEvents(deployment string, events []Event, now time.Time) Cause {
	fitting := slices.DeleteFunc(slices.Clone(events), func(e Event) bool {
		return !e.isOf(deployment) || !e.tells() || now.Sub(e.at()) > freshEvent
	})
	if len(fitting) == 0 {
		return Cause{}
	}
	best := slices.MinFunc(fitting, func(a, b Event) int {
		return cmp.Or(
			cmp.Compare(slices.Index(telling, a.Reason), slices.Index(telling, b.Reason)),
			b.at().Compare(a.at()), strings.Compare(a.Message, b.Message),
		)
	})
	return newCause(best.Reason, withoutNames(best.Message, best.Involved.Name, best.Involved.UID))
}

// isOf knows the objects of a Deployment by their names: the name of a ReplicaSet has one
// part more than that of its Deployment, and that of a pod has two.
func (e Event) isOf(deployment string) bool {
	rest, found := strings.CutPrefix(e.Involved.Name, deployment+"-")
	parts := map[string]int{"ReplicaSet": 0, "Pod": 1}
	more, known := parts[e.Involved.Kind]
	return found && known && strings.Count(rest, "-") == more
}

// tells is false for an event that only repeats a state of the pod, which others explain.
func (e Event) tells() bool {
	return slices.Contains(telling, e.Reason) && e.Message != "Error: "+reasonPull && e.Message != "Error: ErrImagePull"
}

// With is the workload with the cause in its reason.
func (w Workload) With(cause Cause) Workload {
	if cause.Text != "" {
		w.Reason = strings.TrimSuffix(w.Reason, ".") + ": " + cause.Text
	}
	return w
}
