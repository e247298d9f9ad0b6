package status

import (
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/clusterextensions/operator-controller/test/argocd"
)

// Capture is one state of an object, as a watch told of it.
type Capture struct {
	// At is when the watch told of it.
	At time.Time

	// Object is all of it.
	Object *unstructured.Unstructured

	// Row is what kubectl get prints: cells by the names of their columns, without
	// those that are shown with -o wide only.
	Row map[string]string

	// Argo is what Argo CD says of it.
	Argo argocd.Health
}

// Condition is one of an object, as far as clients look at it.
type Condition struct {
	Status, Reason, Message string

	// ObservedGeneration is zero if the condition has none.
	ObservedGeneration int64
}

// Is tells conditions by status and reason, such as "True Succeeded".
func (c Condition) Is(status, reason string) bool { return c.Status == status && c.Reason == reason }

// Condition finds one by its type. The zero value stands for none.
func (c Capture) Condition(kind string) Condition {
	list, _, _ := unstructured.NestedSlice(c.Object.Object, "status", "conditions")
	for _, item := range list {
		fields, ok := item.(map[string]any)
		if !ok || fields["type"] != kind {
			continue
		}
		text := func(name string) string {
			value, _, _ := unstructured.NestedString(fields, name)
			return value
		}
		generation, _, _ := unstructured.NestedInt64(fields, "observedGeneration")
		return Condition{
			Status: text("status"), Reason: text("reason"), Message: text("message"), ObservedGeneration: generation,
		}
	}
	return Condition{}
}

// Observed says that the status is about the spec as it is. While a status says
// nothing of generations, that cannot be told, and it counts.
func (c Capture) Observed() bool {
	observed, found, _ := unstructured.NestedInt64(c.Object.Object, "status", "observedGeneration")
	return !found || observed == c.Object.GetGeneration()
}

// IsDeleted says that somebody has asked for the deletion.
func (c Capture) IsDeleted() bool { return c.Object.GetDeletionTimestamp() != nil }

// Version of the bundle that the status says is installed.
func (c Capture) Version() string {
	version, _, _ := unstructured.NestedString(c.Object.Object, "status", "install", "bundle", "version")
	return version
}

// Kstatus is what clients that know nothing of our kinds make of the object.
func (c Capture) Kstatus() kstatus.Status {
	result, err := kstatus.Compute(c.Object)
	if err != nil {
		return kstatus.UnknownStatus
	}
	return result.Status
}

// WaitReturns says that kubectl wait --for=condition=KIND would return.
func (c Capture) WaitReturns(kind string) bool {
	condition := c.Condition(kind)
	if condition.Status != "True" {
		return false
	}
	observed := condition.ObservedGeneration
	if observed == 0 {
		// This is where kubectl looks next.
		of, found, _ := unstructured.NestedInt64(c.Object.Object, "status", "observedGeneration")
		if !found {
			return true
		}
		observed = of
	}
	return observed >= c.Object.GetGeneration()
}

func (c Capture) String() string {
	if c.Object == nil {
		return "none"
	}
	ready, progressing := c.Condition("Ready"), c.Condition("Progressing")
	return fmt.Sprintf("generation %d at %s: %s; Ready=%s %s %q; Progressing=%s %s %.200q",
		c.Object.GetGeneration(), c.At.Format("15:04:05.000"), c.Kstatus(), ready.Status, ready.Reason, ready.Message,
		progressing.Status, progressing.Reason, progressing.Message)
}
