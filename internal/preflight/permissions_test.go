package preflight_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

func TestPermissions(t *testing.T) {
	t.Parallel()
	const gain = `ServiceAccount "ns/op": Namespace:"ns" APIGroups:[""] Resources:[secrets] Verbs:[get]`
	few, many := operator("pods"), operator("pods", "secrets")
	approve := preflight.Growth{Approve: true}
	tests := map[string]struct {
		reason      string
		growth      preflight.Growth
		before      []*unstructured.Unstructured
		inherited   []*unstructured.Unstructured
		wanted      []*unstructured.Unstructured
		mayNothing  bool
		want        []string
		wantPending string
		wantMissing bool
	}{
		"first installation": {
			reason: "there is nothing to compare with, and who installs it has seen it",
			growth: approve, wanted: many,
		},
		"as before": {
			reason: "rights that are not new need no approval",
			growth: approve, before: few, wanted: few,
		},
		"fewer": {
			reason: "nor do fewer",
			growth: approve, before: many, wanted: few,
		},
		"more, allowed": {
			reason: "it is told, and so is what the ServiceAccount needs for it",
			before: few, wanted: many,
			want: []string{
				"the operator gains " + gain,
				`the ServiceAccount needs more than before: Namespace:"ns" APIGroups:[""] Resources:[secrets] Verbs:[get]`,
			},
		},
		"more, to be approved": {
			reason: "it waits", growth: approve, before: few, wanted: many, wantPending: gain,
		},
		"more, and another version approved": {
			reason: "an approval is for one version",
			growth: preflight.Growth{Approve: true, Approved: "1.0.0"}, before: few, wanted: many, wantPending: gain,
		},
		"more, approved": {
			reason: "it goes on, and is told",
			growth: preflight.Growth{Approve: true, Approved: "1.1.0"}, before: few, wanted: many,
			want: []string{
				"the operator gains " + gain,
				`the ServiceAccount needs more than before: Namespace:"ns" APIGroups:[""] Resources:[secrets] Verbs:[get]`,
			},
		},
		"as before, and withheld": {
			reason: "it waits whatever it grants",
			growth: preflight.Growth{Withheld: true}, before: few, wanted: few, wantPending: "waits for approval",
		},
		"more, and withheld": {
			reason: "what it would grant is told",
			growth: preflight.Growth{Withheld: true, Approved: "1.1.0"}, before: few, wanted: many, wantPending: gain,
		},
		"F28: more, and another extension had it": {
			reason: "it was not approved for this one",
			growth: approve, before: few, inherited: many, wanted: many, wantPending: gain,
		},
		"F28: first installation, and another extension had less": {
			reason: "there is nothing of its own to compare with",
			growth: approve, inherited: few, wanted: many,
		},
		"more, and too few to install it": {
			reason: "nobody is asked to agree to what cannot be done",
			growth: approve, before: few, wanted: many, mayNothing: true, wantMissing: true,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := preflight.Permissions(t.Context(), clients(!test.mayNothing), test.growth, preflight.Install{
				Mapper:  rolesServed(),
				Subject: permission.Subject{Namespace: "ns", ServiceAccount: "installer"},
				Content: permission.Content{Before: slices.Concat(test.before, test.inherited), Inherited: test.inherited, Wanted: test.wanted},
				Version: "1.1.0",
			})
			if _, missing := errors.AsType[*permission.MissingError](err); missing != test.wantMissing {
				t.Errorf("%s: err = %v", test.reason, err)
			}
			if diff := cmp.Diff(test.want, got); diff != "" {
				t.Errorf("%s: notes (-want +got):\n%s", test.reason, diff)
			}
			pending, ok := errors.AsType[*preflight.ApprovalError](err)
			if ok != (test.wantPending != "") {
				t.Fatalf("%s: err = %v", test.reason, err)
			}
			if ok && (!strings.Contains(pending.Error(), test.wantPending) || !strings.Contains(pending.Error(), `approvedVersion to "1.1.0"`)) {
				t.Errorf("%s: %v", test.reason, pending)
			}
		})
	}
}

func TestApprovalErrorIsBounded(t *testing.T) {
	t.Parallel()
	err := &preflight.ApprovalError{Version: "1.1.0"}
	for i := range 1000 {
		err.Gains = append(err.Gains, permission.Gain{Subject: "s", Role: fmt.Sprintf("ClusterRole %q", fmt.Sprint("role-", i))})
	}
	if text := err.Error(); len(text) > 700 || !strings.Contains(text, "more") {
		t.Errorf("%d bytes: %s", len(text), text)
	}
}

// operator is the role of an operator that may get some resources, with its binding.
func operator(resources ...string) []*unstructured.Unstructured {
	var listed []any
	for _, resource := range resources {
		listed = append(listed, resource)
	}
	role := func(kind string, content map[string]any) *unstructured.Unstructured {
		content["apiVersion"], content["kind"] = "rbac.authorization.k8s.io/v1", kind
		content["metadata"] = map[string]any{"namespace": "ns", "name": "op"}
		return &unstructured.Unstructured{Object: content}
	}
	return []*unstructured.Unstructured{
		role("Role", map[string]any{"rules": []any{
			map[string]any{"apiGroups": []any{""}, "resources": listed, "verbs": []any{"get"}},
		}}),
		role("RoleBinding", map[string]any{
			"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "op"},
			"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": "op", "namespace": "ns"}},
		}),
	}
}

// clients are those of a ServiceAccount that may do everything or nothing.
func clients(everything bool) permission.Clients {
	api := fake.NewClientset()
	api.PrependReactor("create", "selfsubjectrulesreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
		review := &authorizationv1.SelfSubjectRulesReview{}
		if everything {
			all := []string{"*"}
			review.Status.ResourceRules = []authorizationv1.ResourceRule{{Verbs: all, APIGroups: all, Resources: all}}
		}
		return true, review, nil
	})
	return permission.Clients{Authorization: api.AuthorizationV1(), RBAC: api.RbacV1()}
}

func rolesServed() meta.RESTMapper {
	mapper := meta.NewDefaultRESTMapper([]schema.GroupVersion{rbacv1.SchemeGroupVersion})
	for _, kind := range []string{"Role", "RoleBinding"} {
		mapper.Add(rbacv1.SchemeGroupVersion.WithKind(kind), meta.RESTScopeNamespace)
	}
	return mapper
}
