package health

import (
	"cmp"
	"regexp"
	"slices"
	"strings"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
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
	reasonFailedCreate, "FailedScheduling", "FailedMount", "FailedAttachVolume", "FailedCreatePodSandBox", "Failed", "BackOff", "Unhealthy",
}

// freshEvent is for how long an event says how it is now. One that goes on is repeated
// within that time: the kubelet waits for five minutes at most between two tries.
const freshEvent = 10 * time.Minute

// CauseOfEvents returns why the pods of a workload do not serve, as far as events show it: those about the workload, its
// ReplicaSets and their pods.
func CauseOfEvents(workload object.Key, events []Event, now time.Time) Cause {
	fitting := slices.DeleteFunc(slices.Clone(events), func(e Event) bool {
		return !e.isOf(workload) || !e.tells() || now.Sub(e.at()) > freshEvent
	})
	if len(fitting) == 0 {
		return Cause{}
	}
	best := slices.MinFunc(fitting, func(a, b Event) int {
		return cmp.Or(
			cmp.Compare(slices.Index(telling, a.Reason), slices.Index(telling, b.Reason)),
			b.at().Compare(a.at()), strings.Compare(a.said(workload), b.said(workload)),
		)
	})
	if best.Reason == reasonFailedCreate {
		return Cause{Reason: best.Reason, Text: best.Reason + ": " + refusalOf(workload.Name, best.said(workload))}
	}
	return newCause(best.Reason, best.said(workload))
}

// probeFailure is what the kubelet says of a probe, before what the program has answered.
// That can be anything, and another thing each time.
var probeFailure = regexp.MustCompile(`^(Readiness|Liveness|Startup) probe (failed|errored)(: HTTP probe failed with statuscode: [0-9]{3}$)?`)

// said is the message, without what differs between pods of the workload.
func (e Event) said(workload object.Key) string {
	if e.Reason == "Unhealthy" {
		return probeFailure.FindString(e.Message)
	}
	if e.Involved.Name == workload.Name {
		return withoutNames(e.Message, "", e.Involved.UID)
	}
	return withoutNames(e.Message, e.Involved.Name, e.Involved.UID)
}

// letters matches a character of the suffixes that the cluster generates for names.
const letters = "[bcdfghjklmnpqrstvwxz2-9]"

// generatedNames contains patterns of the suffixes that follow the name of a workload, by its kind and by the kind of
// the generated object.
var generatedNames = map[string]map[string]*regexp.Regexp{
	"Deployment": {
		"ReplicaSet": regexp.MustCompile(`^-` + letters + `{1,10}$`),
		"Pod":        regexp.MustCompile(`^-` + letters + `{1,10}-` + letters + `{5}$`),
	},
	"StatefulSet":           {"Pod": regexp.MustCompile(`^-[0-9]{1,10}$`)},
	"DaemonSet":             ofItsPods,
	"ReplicaSet":            ofItsPods,
	"ReplicationController": ofItsPods,
	"Job":                   ofItsPods,
}

var ofItsPods = map[string]*regexp.Regexp{"Pod": regexp.MustCompile(`^-` + letters + `{5}$`)}

// isOf reports whether the event is about the workload or an object of it. It compares names.
func (e Event) isOf(workload object.Key) bool {
	if e.Involved.Kind == workload.Kind && e.Involved.Name == workload.Name {
		return true
	}
	rest, found := strings.CutPrefix(e.Involved.Name, workload.Name)
	generated := generatedNames[workload.Kind][e.Involved.Kind]
	return found && generated != nil && generated.MatchString(rest)
}

// tells is false for an event that only repeats a state of the pod, which others explain.
func (e Event) tells() bool {
	return slices.Contains(telling, e.Reason) && e.Message != "Error: "+reasonPull && e.Message != "Error: ErrImagePull"
}
