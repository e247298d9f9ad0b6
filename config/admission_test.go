package config_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// What is asked for, and when it is refused, is tested against an API server in
// test/admission; this is what every variant has in common.
func TestAdmission(t *testing.T) {
	t.Parallel()
	for _, dir := range []string{"admission", "overlays/any-change"} {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			objects := build(t, dir)
			policy := the[*admissionregistrationv1.ValidatingAdmissionPolicy](t, objects)
			binding := the[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](t, objects)
			if len(objects) != 2 {
				t.Errorf("there are %d objects, want a policy and its binding", len(objects))
			}
			if *policy.Spec.FailurePolicy != admissionregistrationv1.Fail {
				t.Error("what cannot be decided is let through")
			}
			if policy.Spec.ParamKind != nil || binding.Spec.ParamRef != nil || binding.Spec.MatchResources != nil {
				t.Error("the policy can be narrowed by objects that are not looked at here")
			}
			want := []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny}
			if diff := cmp.Diff(want, binding.Spec.ValidationActions); diff != "" {
				t.Errorf("actions (-want +got):\n%s", diff)
			}
			if binding.Spec.PolicyName != policy.Name {
				t.Errorf("the binding is for %q", binding.Spec.PolicyName)
			}
			for _, object := range objects {
				if got := object.GetLabels()["app.kubernetes.io/part-of"]; got != "operator-controller" {
					t.Errorf("%s is part of %q", id(object), got)
				}
			}
		})
	}
}

func TestAdmissionMatchesClusterExtensionsOnly(t *testing.T) {
	t.Parallel()
	policy := the[*admissionregistrationv1.ValidatingAdmissionPolicy](t, build(t, "admission"))
	cluster := admissionregistrationv1.ClusterScope
	want := []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: []admissionregistrationv1.OperationType{admissionregistrationv1.Create, admissionregistrationv1.Update},
			Rule: admissionregistrationv1.Rule{
				APIGroups:   []string{"olm.operatorframework.io"},
				APIVersions: []string{"v1"},
				Resources:   []string{"clusterextensions"},
				Scope:       &cluster,
			},
		},
	}}
	if diff := cmp.Diff(want, policy.Spec.MatchConstraints.ResourceRules); diff != "" {
		t.Errorf("rules (-want +got):\n%s", diff)
	}
}
