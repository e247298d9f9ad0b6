package judge

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	"github.com/clusterextensions/operator-controller/test/argocd"
)

// Reading is an object as it was at a time, and what Argo CD says of it.
type Reading struct {
	// Object is all of it.
	Object *unstructured.Unstructured

	// Argo is what Argo CD says of it.
	Argo argocd.Health
}

// Read asks Argo CD's check of the kind. It fails where the check does.
func Read(ctx context.Context, object *unstructured.Unstructured) (Reading, error) {
	said, err := argocd.HealthOf(ctx, object)
	return Reading{Object: object, Argo: said}, err
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
func (r Reading) Condition(kind string) Condition {
	list, _, _ := unstructured.NestedSlice(r.Object.Object, "status", "conditions")
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
func (r Reading) Observed() bool {
	observed, found, _ := unstructured.NestedInt64(r.Object.Object, "status", "observedGeneration")
	return !found || observed == r.Object.GetGeneration()
}

// IsDeleted says that somebody has asked for the deletion.
func (r Reading) IsDeleted() bool { return r.Object.GetDeletionTimestamp() != nil }

// Kstatus is what clients that know nothing of our kinds make of the object.
func (r Reading) Kstatus() kstatus.Status {
	result, err := kstatus.Compute(r.Object)
	if err != nil {
		return kstatus.UnknownStatus
	}
	return result.Status
}

// WaitReturns says that kubectl wait --for=condition=KIND would return.
func (r Reading) WaitReturns(kind string) bool {
	condition := r.Condition(kind)
	if condition.Status != "True" {
		return false
	}
	observed := condition.ObservedGeneration
	if observed == 0 {
		// This is where kubectl looks next.
		of, found, _ := unstructured.NestedInt64(r.Object.Object, "status", "observedGeneration")
		if !found {
			return true
		}
		observed = of
	}
	return observed >= r.Object.GetGeneration()
}
