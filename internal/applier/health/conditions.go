package health

import (
	"encoding/json"
	"fmt"
	"regexp"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// conditioned is an object with conditions. Other fields of its status are not read.
type conditioned struct {
	generation int64
	created    time.Time

	// observed is the generation that the status is about; nil if the status does not contain it.
	observed *int64

	conditions []metav1.Condition
}

// condition returns the condition of a type; its status is empty if there is none.
func (c *conditioned) condition(kind string) metav1.Condition {
	for _, condition := range c.conditions {
		if condition.Type == kind {
			return condition
		}
	}
	return metav1.Condition{}
}

// isStale reports whether the status is about an earlier spec.
func (c *conditioned) isStale() bool { return c.observed != nil && *c.observed < c.generation }

// conditionedOf reads the JSON of a status. It skips fields that have other types than usual, which a CRD can define.
func conditionedOf(metadata metav1.Object, data []byte) *conditioned {
	read := &conditioned{generation: metadata.GetGeneration(), created: metadata.GetCreationTimestamp().UTC()}
	fields := map[string]json.RawMessage{}
	if json.Unmarshal(data, &fields) != nil {
		return read
	}
	if json.Unmarshal(fields["observedGeneration"], &read.observed) != nil {
		read.observed = nil
	}
	var conditions []json.RawMessage
	if json.Unmarshal(fields["conditions"], &conditions) != nil {
		return read
	}
	for _, data := range conditions {
		var condition struct {
			Type               string `json:"type"`
			Status             string `json:"status"`
			Reason             string `json:"reason"`
			Message            string `json:"message"`
			ObservedGeneration int64  `json:"observedGeneration"`
		}
		if json.Unmarshal(data, &condition) == nil {
			read.conditions = append(read.conditions, metav1.Condition{
				Type: condition.Type, Status: metav1.ConditionStatus(condition.Status), Reason: condition.Reason,
				Message: condition.Message, ObservedGeneration: condition.ObservedGeneration,
			})
		}
	}
	return read
}

func judgeWithConditions(of func(object.Key, *conditioned) Workload) judge {
	return judge{
		ofObject: func(key object.Key, live *unstructured.Unstructured) Workload {
			data, err := json.Marshal(live.Object["status"])
			if err != nil {
				data = nil
			}
			return of(key, conditionedOf(live, data))
		},
		ofJSON: func(data []byte) (*metav1.ObjectMeta, func(object.Key) Workload, error) {
			read := struct {
				metav1.ObjectMeta `json:"metadata"`

				Status json.RawMessage `json:"status"`
			}{}
			err := json.Unmarshal(data, &read)
			return &read.ObjectMeta, func(key object.Key) Workload {
				return of(key, conditionedOf(&read.ObjectMeta, read.Status))
			}, err
		},
	}
}

// ofCustomResource follows the rules of kstatus for unknown kinds. They use the conditions Stalled, Reconciling and
// Ready, and observedGeneration. It returns a workload that does not count if there is no such condition.
func ofCustomResource(key object.Key, live *conditioned) Workload {
	workload := Workload{Key: key, Available: metav1.ConditionTrue}
	ready := live.condition("Ready")
	stalled, reconciling := live.condition(string(status.ConditionStalled)), live.condition(string(status.ConditionReconciling))
	if ready.Status != "" && ready.Status != metav1.ConditionTrue {
		workload.Available, workload.Reason = metav1.ConditionUnknown, textOf(ready)
		if ready.Status == metav1.ConditionFalse {
			workload.Available, workload.Created = metav1.ConditionFalse, live.created
		}
	}
	switch {
	case ready.Status == "" && stalled.Status == "" && reconciling.Status == "":
		return Workload{Key: key}
	case live.isStale(), ready.Status == metav1.ConditionFalse && 0 < ready.ObservedGeneration && ready.ObservedGeneration < live.generation:
		return notObserved(key)
	case stalled.Status == metav1.ConditionTrue:
		workload.Available, workload.Stuck, workload.Reason = metav1.ConditionFalse, true, textOf(stalled)
	case reconciling.Status == metav1.ConditionTrue:
		workload.RollingOut, workload.Reason = true, textOf(reconciling)
	case ready.Status == "":
		return Workload{Key: key}
	}
	return workload
}

// textOf describes a condition, with its reason and message, in one line.
func textOf(condition metav1.Condition) string {
	return newCause(fmt.Sprintf("its condition %s is %s", condition.Type, condition.Status), joined(condition.Reason, condition.Message)).Text
}

func joined(reason, message string) string {
	if reason != "" && message != "" {
		return reason + ": " + message
	}
	return reason + message
}

// ofDefinition reports whether the API server serves the kind of a CustomResourceDefinition under all of its names.
// The API server needs a moment for it after the CustomResourceDefinition was created.
func ofDefinition(key object.Key, live *conditioned) Workload {
	workload := Workload{Key: key, Available: metav1.ConditionTrue}
	accepted, established := live.condition(string(apiextensionsv1.NamesAccepted)), live.condition(string(apiextensionsv1.Established))
	switch {
	case accepted.Status == metav1.ConditionFalse:
		workload.Available, workload.Reason = metav1.ConditionFalse, textOf(accepted)
		if name := quoted.FindStringSubmatch(accepted.Message); name != nil {
			workload.TakenName = name[1]
		}
	case established.Status == "", established.Status == metav1.ConditionFalse && established.Reason == reasonInstalling:
		workload.Available, workload.RollingOut, workload.Reason = metav1.ConditionFalse, true, "the API server does not serve it yet"
	case established.Status != metav1.ConditionTrue:
		workload.Available, workload.Reason = metav1.ConditionFalse, textOf(established)
	}
	return workload
}

// quoted finds the first name in the message of a condition.
var quoted = regexp.MustCompile(`"([^"]{1,253})"`)

// reasonInstalling is the reason of the condition Established in the seconds before it becomes True.
const reasonInstalling = "Installing"
