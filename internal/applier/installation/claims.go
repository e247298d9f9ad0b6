package installation

import (
	"fmt"

	operatorsv2 "github.com/operator-framework/api/pkg/operators/v2"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// maxClaimText bounds each text of a [Claim], in bytes. Operators write a sentence.
const maxClaimText = 1024

// Claims are what an OperatorCondition says of whether its operator can be upgraded. There
// are none where there is no such object.
type Claims struct {
	// Operator is what the operator says, and Override what an administrator has put in the
	// place of that; nil for nothing.
	Operator, Override *Claim

	// Unwatched says that nobody is woken when they change.
	Unwatched bool
}

// Claim is a condition of the type Upgradeable.
type Claim struct {
	// Status is one of True, False and Unknown, or whatever else somebody wrote.
	Status metav1.ConditionStatus

	// Reason and Message are one line each, cut if they are too long.
	Reason, Message string
}

// ClaimsOf reads an OperatorCondition. Of version v2 it looks at the spec alone: the conditions
// in the status are a copy that only classic OLM makes, and that can be old. Version v1 has the
// words of the operator in the status. It fails for an object that is not of its kind, whose
// claims are not known.
func ClaimsOf(object *unstructured.Unstructured) (Claims, error) {
	var condition operatorsv2.OperatorCondition
	isV1 := object.GroupVersionKind().Version == "v1"
	relevant := map[string]any{"spec": object.Object["spec"]}
	if isV1 { // of others, it could be what the conversion fails for
		relevant["status"] = object.Object["status"]
	}
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(relevant, &condition); err != nil {
		return Claims{}, fmt.Errorf("reading OperatorCondition %q: %w", object.GetName(), err)
	}
	said := condition.Spec.Conditions
	if isV1 {
		said = condition.Status.Conditions
	}
	return Claims{Operator: claimIn(said), Override: claimIn(condition.Spec.Overrides)}, nil
}

func claimIn(conditions []metav1.Condition) *Claim {
	found := meta.FindStatusCondition(conditions, operatorsv2.Upgradeable)
	if found == nil {
		return nil
	}
	return &Claim{
		Status:  metav1.ConditionStatus(excerpt.Line(string(found.Status), maxClaimText)),
		Reason:  excerpt.Line(found.Reason, maxClaimText),
		Message: excerpt.Line(found.Message, maxClaimText),
	}
}
