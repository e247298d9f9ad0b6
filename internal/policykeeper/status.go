package policykeeper

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// maxMessageBytes bounds the text of the condition.
const maxMessageBytes = 1000

// setReady reports whether it has changed what the status of a policy says.
func setReady(policy *policyv1alpha1.ImagePolicy, set *imagepolicy.Set) bool {
	return meta.SetStatusCondition(&policy.Status.Conditions, ready(policy, set))
}

// ready is the condition of a policy.
func ready(policy *policyv1alpha1.ImagePolicy, set *imagepolicy.Set) metav1.Condition {
	problems, _ := set.Problems(policy.Name)
	made := metav1.Condition{
		Type: policyv1alpha1.TypeReady, Status: metav1.ConditionTrue, Reason: policyv1alpha1.ReasonUsable,
		Message: "all authorities can be used", ObservedGeneration: policy.Generation,
	}
	if len(problems) > 0 {
		made.Status, made.Reason = metav1.ConditionFalse, policyv1alpha1.ReasonUnusable
		made.Message = excerpt.Message(excerpt.Line(strings.Join(problems, "; "), maxMessageBytes))
	}
	return made
}
