package e2e_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestFleetThatFailsForOneCause: the log has few lines of it, each extension says what is
// wrong, and when the cause is gone, which nobody tells the controller, all are installed.
//
//nolint:paralleltest // it replaces the controller of all tests
func TestFleetThatFailsForOneCause(t *testing.T) {
	const cause = "there is no address left"
	fleet := newFleet(t, "refused", 20, func(int) bool { return false })
	said := logOf(t, false, func() {
		serving(t, fleet.name)
		heal := refuseServices(t, fleet.names, cause)
		fleet.install(t)
		for _, name := range fleet.names {
			conditionContains(t, name, ocv1.TypeProgressing, cause)
		}
		heal()
		for _, name := range fleet.names {
			installed(t, name, "1.0.0")
		}
	})
	lines, ofSeveral := 0, 0
	for _, line := range said {
		if line.text("msg") != "not as wanted" || !slices.Contains(fleet.names, line.object()) {
			continue
		}
		if lines++; line["extensions"] != nil {
			ofSeveral++
		}
		if !strings.Contains(line.text("reason"), cause) {
			t.Errorf("it is said of %s: %s", line.object(), line.text("reason"))
		}
	}
	// The first one, when there are twice as many at least: 2, 4, 8, 16; and the last one.
	if lines > 6 || ofSeveral == 0 {
		t.Errorf("the log has %d lines about extensions that fail, %d of them of several", lines, ofSeveral)
	}
}

// refuseServices has the API server refuse Services in namespaces, until what it returns is
// called.
func refuseServices(t *testing.T, namespaces []string, why string) (heal func()) {
	t.Helper()
	name := "refuse-" + namespaces[0]
	policy := &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: metav1.ObjectMeta{Name: name}}
	policy.Spec.MatchConstraints = &admissionregistrationv1.MatchResources{
		NamespaceSelector: &metav1.LabelSelector{MatchExpressions: []metav1.LabelSelectorRequirement{
			{Key: corev1.LabelMetadataName, Operator: metav1.LabelSelectorOpIn, Values: namespaces},
		}},
		ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create},
			Rule:       admissionregistrationv1.Rule{APIGroups: []string{""}, APIVersions: []string{"v1"}, Resources: []string{"services"}},
		}}},
	}
	policy.Spec.Validations = []admissionregistrationv1.Validation{{Expression: "false", Message: why}}
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: metav1.ObjectMeta{Name: name}}
	binding.Spec.PolicyName = name
	binding.Spec.ValidationActions = []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
	for _, object := range []client.Object{policy, binding} {
		if err := theSuite.Admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, object) })
	}
	eventually(t, "that Services are refused", func(ctx context.Context) error {
		service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: namespaces[0], Name: "trial"}}
		service.Spec.Ports = []corev1.ServicePort{{Port: 80}}
		if err := theSuite.Admin.Create(ctx, service, client.DryRunAll); err == nil || !strings.Contains(err.Error(), why) {
			return errors.Join(errors.New("not yet"), err)
		}
		return nil
	})
	return func() { remove(t, binding) }
}
