package health

import (
	"cmp"
	"regexp"
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

// CauseOfEvents is why pods of a workload do not serve, as far as events tell: those about itself or, for a Deployment,
// its ReplicaSets, and about their pods.
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
			b.at().Compare(a.at()), strings.Compare(a.said(), b.said()),
		)
	})
	if said := best.said(); ofPodCreation(said) != said {
		return Cause{Reason: best.Reason, Text: best.Reason + ": " + ofPodCreation(said)}
	}
	return newCause(best.Reason, best.said())
}

// probeFailure is what the kubelet says of a probe, before what the program has answered.
// That can be anything, and another thing each time.
var probeFailure = regexp.MustCompile(`^(Readiness|Liveness|Startup) probe (failed|errored)(: HTTP probe failed with statuscode: [0-9]{3}$)?`)

// said is the message, without what differs between pods.
func (e Event) said() string {
	if e.Reason == "Unhealthy" {
		return probeFailure.FindString(e.Message)
	}
	return withoutNames(e.Message, e.Involved.Name, e.Involved.UID)
}

// generatedName is what the names of ReplicaSets and of their pods have after that of the
// Deployment, in the letters that the cluster makes names of.
var generatedName = map[string]*regexp.Regexp{
	"ReplicaSet": regexp.MustCompile(`^-[bcdfghjklmnpqrstvwxz2-9]{1,10}$`),
	"Pod":        regexp.MustCompile(`^-[bcdfghjklmnpqrstvwxz2-9]{1,10}-[bcdfghjklmnpqrstvwxz2-9]{5}$`),
}

// createsPods are the kinds whose own events report that no pod can be created.
var createsPods = []string{"StatefulSet", "DaemonSet", "ReplicaSet", "ReplicationController"}

// isOf reports whether the event is about a workload, or about one of its objects, by their names.
func (e Event) isOf(workload string) bool {
	if e.Involved.Name == workload {
		return slices.Contains(createsPods, e.Involved.Kind)
	}
	rest, found := strings.CutPrefix(e.Involved.Name, workload)
	generated := generatedName[e.Involved.Kind]
	return found && generated != nil && generated.MatchString(rest)
}

// tells is false for an event that only repeats a state of the pod, which others explain.
func (e Event) tells() bool {
	return slices.Contains(telling, e.Reason) && e.Message != "Error: "+reasonPull && e.Message != "Error: ErrImagePull"
}

// With is the workload with the cause in its reason.
func (w Workload) With(cause Cause) Workload {
	if cause.Text != "" && !strings.Contains(w.Reason, strings.TrimPrefix(cause.Text, cause.Reason+": ")) {
		w.Reason = strings.TrimSuffix(w.Reason, ".") + ": " + cause.Text
	}
	return w
}
