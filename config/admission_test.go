package config_test

import (
	"fmt"
	"testing"

	"github.com/google/go-cmp/cmp"
	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
)

// policies are those of each kustomization, and what they match: resources and
// operations.
var policies = map[string]map[string]string{
	"admission": {
		"operator-controller-approvals":              "[clusterextensions] [UPDATE]",
		"operator-controller-named-bundles":          "[clusterextensions] [CREATE UPDATE]",
		"operator-controller-moves":                  "[clusterextensions] [CREATE UPDATE]",
		"operator-controller-use-of-serviceaccounts": "[clusterextensions] [CREATE UPDATE]",
		"operator-controller-forbidden-namespaces":   "[clusterextensions] [CREATE UPDATE]",
		"operator-controller-clustercatalogs":        "[clustercatalogs] [CREATE UPDATE]",
	},
	"overlays/any-change": {
		"operator-controller-approvals":              "[clusterextensions] [UPDATE]",
		"operator-controller-named-bundles":          "[clusterextensions] [CREATE UPDATE]",
		"operator-controller-moves":                  "[clusterextensions] [CREATE UPDATE]",
		"operator-controller-use-of-serviceaccounts": "[clusterextensions] [CREATE UPDATE]",
		"operator-controller-forbidden-namespaces":   "[clusterextensions] [CREATE UPDATE]",
		"operator-controller-clustercatalogs":        "[clustercatalogs] [CREATE UPDATE]",
	},
	"overlays/create-by-name": {
		"operator-controller-create-by-name": "[clustercatalogs clusterextensions] [CREATE]",
	},
}

// What is asked for, and when it is refused, is tested against an API server in
// test/admission; this is what all policies have in common: each has a binding, and
// nothing narrows it. Status is matched by none.
func TestAdmission(t *testing.T) {
	t.Parallel()
	for dir, want := range policies {
		t.Run(dir, func(t *testing.T) {
			t.Parallel()
			objects := build(t, dir)
			got, bound := map[string]string{}, map[string]bool{}
			for _, policy := range all[*admissionregistrationv1.ValidatingAdmissionPolicy](objects) {
				checkPolicy(t, policy)
				rule := policy.Spec.MatchConstraints.ResourceRules[0]
				got[policy.Name] = fmt.Sprint(rule.Resources, rule.Operations)
			}
			for _, binding := range all[*admissionregistrationv1.ValidatingAdmissionPolicyBinding](objects) {
				checkBinding(t, binding)
				bound[binding.Spec.PolicyName] = true
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("policies, and what they match (-want +got):\n%s", diff)
			}
			for name := range want {
				if !bound[name] {
					t.Errorf("%s is not bound", name)
				}
			}
			if len(objects) != 2*len(want) {
				t.Errorf("there are %d objects, want %d policies and their bindings", len(objects), len(want))
			}
			for _, object := range objects {
				if got := object.GetLabels()["app.kubernetes.io/part-of"]; got != "olm" {
					t.Errorf("%s is part of %q", id(object), got)
				}
			}
		})
	}
}

func checkPolicy(t *testing.T, policy *admissionregistrationv1.ValidatingAdmissionPolicy) {
	t.Helper()
	if *policy.Spec.FailurePolicy != admissionregistrationv1.Fail {
		t.Errorf("%s: what cannot be decided is let through", policy.Name)
	}
	if policy.Spec.ParamKind != nil {
		t.Errorf("%s can be narrowed by objects that are not looked at here", policy.Name)
	}
	cluster := admissionregistrationv1.ClusterScope
	match := policy.Spec.MatchConstraints
	if len(match.ResourceRules) != 1 {
		t.Fatalf("%s has %d rules", policy.Name, len(match.ResourceRules))
	}
	rule := match.ResourceRules[0]
	want := &admissionregistrationv1.MatchResources{ResourceRules: []admissionregistrationv1.NamedRuleWithOperations{{
		RuleWithOperations: admissionregistrationv1.RuleWithOperations{
			Operations: rule.Operations,
			Rule: admissionregistrationv1.Rule{
				APIGroups:   []string{"olm.operatorframework.io"},
				APIVersions: []string{"v1"},
				Resources:   rule.Resources,
				Scope:       &cluster,
			},
		},
	}}}
	if diff := cmp.Diff(want, match); diff != "" {
		t.Errorf("%s matches (-want +got):\n%s", policy.Name, diff)
	}
}

func checkBinding(t *testing.T, binding *admissionregistrationv1.ValidatingAdmissionPolicyBinding) {
	t.Helper()
	want := admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName:        binding.Name,
		ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}
	if diff := cmp.Diff(want, binding.Spec); diff != "" {
		t.Errorf("%s (-want +got):\n%s", id(binding), diff)
	}
}

// The overlay asks for more; everything else is the same.
func TestAnyChangeOnlyAsksForMore(t *testing.T) {
	t.Parallel()
	specs := func(dir string) map[string]admissionregistrationv1.ValidatingAdmissionPolicySpec {
		found := map[string]admissionregistrationv1.ValidatingAdmissionPolicySpec{}
		for _, policy := range all[*admissionregistrationv1.ValidatingAdmissionPolicy](build(t, dir)) {
			found[policy.Name] = policy.Spec
		}
		return found
	}
	base, overlay := specs("admission"), specs("overlays/any-change")
	const changed = "operator-controller-use-of-serviceaccounts"
	if cmp.Equal(base[changed].MatchConditions, overlay[changed].MatchConditions) {
		t.Error("the overlay changes nothing")
	}
	spec := overlay[changed]
	spec.MatchConditions = base[changed].MatchConditions
	overlay[changed] = spec
	if diff := cmp.Diff(base, overlay); diff != "" {
		t.Errorf("besides (-base +overlay):\n%s", diff)
	}
}

// The forbidden namespaces are those that the manifests and the cluster run in.
func TestForbiddenNamespaces(t *testing.T) {
	t.Parallel()
	want := fmt.Sprintf("forbidden: ['kube-system', '%s']", manager(t, build(t, "default")).Namespace)
	got := map[string]string{}
	for _, policy := range all[*admissionregistrationv1.ValidatingAdmissionPolicy](build(t, "admission")) {
		if len(policy.Spec.Variables) == 0 {
			continue
		}
		first := policy.Spec.Variables[0]
		got[policy.Name] = first.Name + ": " + first.Expression
	}
	// One refuses, the other says so where it refuses first.
	for _, name := range []string{"operator-controller-forbidden-namespaces", "operator-controller-use-of-serviceaccounts"} {
		if got[name] != want {
			t.Errorf("%s has %q, want %q", name, got[name], want)
		}
	}
}
