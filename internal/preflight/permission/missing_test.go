package permission

import (
	"fmt"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
)

// allAccess is to everything but what escalates.
func allAccess() []Rule {
	rules := make([]Rule, 0, 3)
	for _, namespace := range []string{"", "ns1", "ns2"} {
		rules = append(rules, rule(namespace, "rbac.authorization.k8s.io|*", "get", "create", "patch"),
			rule(namespace, "|configmaps", "get", "create", "patch"))
	}
	return rules
}

func TestMissing(t *testing.T) {
	t.Parallel()
	rbac := func(namespace, resource, verb string) Rule {
		return rule(namespace, "rbac.authorization.k8s.io|"+resource, verb)
	}
	url := Rule{PolicyRule: rbacv1.PolicyRule{NonResourceURLs: []string{"/metrics*"}, Verbs: []string{"*"}}}
	tests := map[string]struct {
		wanted []string
		held   []Rule
		want   []string
	}{
		"nothing is held": {
			wanted: []string{aConfigMap},
			want: []string{
				`Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[settings] Verbs:[get,patch]`,
				`Namespace:"ns1" APIGroups:[] Resources:[configmaps] Verbs:[create]`,
			},
		},
		"rights that hold everywhere hold in a namespace": {
			wanted: []string{aConfigMap}, held: []Rule{rule("", "|configmaps", "get", "create", "patch")},
		},
		"rights in another namespace do not count": {
			wanted: []string{aConfigMap}, held: []Rule{rule("ns2", "*|*", "*")},
			want: []string{
				`Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[settings] Verbs:[get,patch]`,
				`Namespace:"ns1" APIGroups:[] Resources:[configmaps] Verbs:[create]`,
			},
		},
		"rights to the name suffice except to create": {
			wanted: []string{aConfigMap}, held: []Rule{rule("ns1", "|configmaps:settings", "get", "patch", "create")},
			want: []string{`Namespace:"ns1" APIGroups:[] Resources:[configmaps] Verbs:[create]`},
		},
		"a role grants what is not held": {
			wanted: []string{aRole}, held: append(allAccess(), rule("ns2", "|secrets", "get")),
			want: []string{`Namespace:"ns2" APIGroups:[] Resources:[secrets] Verbs:[list]`},
		},
		"a role grants what is held": {
			wanted: []string{aRole}, held: append(allAccess(), rule("ns2", "|secrets", "get"), rule("", "|*", "list")),
		},
		"who may escalate in the namespace may write the role": {
			wanted: []string{aRole}, held: append(allAccess(), rbac("ns2", "roles", "escalate")),
		},
		"who may escalate everywhere may write the role": {
			wanted: []string{aRole}, held: append(allAccess(), rbac("", "roles", "escalate")),
		},
		"to escalate by name does not help to create": {
			wanted: []string{aRole}, held: append(allAccess(), rbac("ns2", "roles:reader", "escalate")),
			want: []string{`Namespace:"ns2" APIGroups:[] Resources:[secrets] Verbs:[get,list]`},
		},
		"to escalate roles does not help with those of the cluster": {
			wanted: []string{aClusterRole}, held: append(allAccess(), rbac("", "roles", "escalate")),
			want: []string{
				`Namespace:"" APIGroups:[] Resources:[secrets] Verbs:[get]`,
				`Namespace:"" Verbs:[get] NonResourceURLs:[/metrics]`,
			},
		},
		"URLs are covered by what they begin with": {
			wanted: []string{aClusterRole}, held: append(allAccess(), url, rule("", "|secrets", "get")),
		},
		"what a role of the cluster grants has to be held everywhere": {
			wanted: []string{aClusterRole}, held: append(allAccess(), url, rule("ns1", "|secrets", "get")),
			want: []string{`Namespace:"" APIGroups:[] Resources:[secrets] Verbs:[get]`},
		},
		"a role that gathers rules takes all rights, or to escalate": {
			wanted: []string{anAggregatedRole}, held: allAccess(),
			want: []string{`Namespace:"" APIGroups:[rbac.authorization.k8s.io] Resources:[clusterroles] Verbs:[escalate]`},
		},
		"all rights are enough for a role that gathers rules, and to bind it": {
			wanted: []string{anAggregatedRole, bindingTo("", "ClusterRole", "gathered", "op")}, held: inNamespace("", everything),
		},
		"a role that gathers rules can be bound by who may bind it": {
			wanted: []string{anAggregatedRole, bindingTo("", "ClusterRole", "gathered", "op")},
			held:   append(allAccess(), rbac("", "clusterroles", "escalate")),
			want: []string{
				`Namespace:"" APIGroups:[rbac.authorization.k8s.io] Resources:[clusterroles] ResourceNames:[gathered] Verbs:[bind]`,
			},
		},
		"a binding to a role of the content takes its rules": {
			wanted: []string{aRole, bindingTo("ns2", "Role", "reader", "op")},
			held:   append(allAccess(), rule("ns2", "|secrets", "get", "list")),
		},
		"to escalate is not to bind": {
			wanted: []string{aRole, bindingTo("ns2", "Role", "reader", "op")},
			held:   append(allAccess(), rbac("ns2", "roles", "escalate")),
			want:   []string{`Namespace:"ns2" APIGroups:[] Resources:[secrets] Verbs:[get,list]`},
		},
		"to bind by name suffices": {
			wanted: []string{aRole, bindingTo("ns2", "Role", "reader", "op")},
			held:   append(allAccess(), rbac("ns2", "roles", "escalate"), rbac("ns2", "roles:reader", "bind")),
		},
		"a role of the cluster is bound in a namespace": {
			wanted: []string{bindingTo("ns2", "ClusterRole", "view", "op")}, held: allAccess(),
			want: []string{
				`Namespace:"ns2" APIGroups:[rbac.authorization.k8s.io] Resources:[clusterroles] ResourceNames:[view] Verbs:[bind]`,
			},
		},
		"a role of the same name in another namespace is another one": {
			wanted: []string{aRole, bindingTo("ns1", "Role", "reader", "op")},
			held:   append(allAccess(), rule("ns2", "|secrets", "get", "list")),
			want: []string{
				`Namespace:"ns1" APIGroups:[rbac.authorization.k8s.io] Resources:[roles] ResourceNames:[reader] Verbs:[bind]`,
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := lines(Missing(needsOf(t, Content{Wanted: objects(t, test.wanted...)}), newHeld(test.held)))
			if diff := cmp.Diff(append([]string{}, test.want...), got); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestDelta(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		after []string
		want  []string
	}{
		"the same": {after: []string{aConfigMap, aRole}},
		"an object has another name": {
			after: []string{strings.Replace(aConfigMap, "settings", "others", 1), aRole},
		},
		"an object is dropped": {after: []string{aRole}},
		"an object in another namespace": {
			after: []string{strings.Replace(aConfigMap, "{", "{namespace: ns3, ", 1), aRole},
			want: []string{
				`Namespace:"ns3" APIGroups:[] Resources:[configmaps] ResourceNames:[settings] Verbs:[get,patch]`,
				`Namespace:"ns3" APIGroups:[] Resources:[configmaps] Verbs:[create]`,
			},
		},
		"an object of another kind": {
			after: []string{aConfigMap, aRole, strings.Replace(aConfigMap, "ConfigMap", "Secret", 1)},
			want: []string{
				`Namespace:"ns1" APIGroups:[] Resources:[secrets] ResourceNames:[settings] Verbs:[get,patch]`,
				`Namespace:"ns1" APIGroups:[] Resources:[secrets] Verbs:[create]`,
			},
		},
		"a role of another name": {after: []string{aConfigMap, strings.Replace(aRole, "reader", "viewer", 1)}},
		"a role that grants more": {
			after: []string{aConfigMap, strings.Replace(aRole, "get, list", "get, watch", 1)},
			want:  []string{`Namespace:"ns2" APIGroups:[] Resources:[secrets] Verbs:[watch]`},
		},
		"a role that grants to manage a kind that the ServiceAccount manages": {
			after: []string{aConfigMap, strings.Replace(aRole, "get, list", "get, delete", 1)},
			want:  []string{`Namespace:"ns2" APIGroups:[] Resources:[secrets] Verbs:[delete]`},
		},
	}
	aSecret := strings.Replace(aConfigMap, "ConfigMap\nmetadata: {", "Secret\nmetadata: {namespace: ns2, ", 1)
	before := []string{aConfigMap, aRole, aSecret}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			old := needsOf(t, Content{Wanted: objects(t, before...)})
			next := needsOf(t, Content{Wanted: objects(t, test.after...), Before: objects(t, before...)})
			if diff := cmp.Diff(append([]string{}, test.want...), lines(Delta(old, next))); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
		})
	}
}

func TestMissingError(t *testing.T) {
	t.Parallel()
	err := &MissingError{Rules: Missing(needsOf(t, Content{Wanted: objects(t, aConfigMap)}), newHeld(nil))}
	want := `pre-authorization failed: service account requires the following permissions to manage cluster extension:
  Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[settings] Verbs:[get,patch]
  Namespace:"ns1" APIGroups:[] Resources:[configmaps] Verbs:[create]`
	if diff := cmp.Diff(want, err.Error()); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

func TestMissingErrorIsBounded(t *testing.T) {
	t.Parallel()
	err := &MissingError{}
	for i := range 1000 {
		err.Rules = append(err.Rules, rule("ns", fmt.Sprintf("|configmaps:%04d", i), "get", "patch"))
	}
	message := err.Error()
	if len(message) > 32<<10 {
		t.Errorf("the message has %d bytes", len(message))
	}
	shown := strings.Count(message, "ResourceNames:")
	if want := fmt.Sprintf("\n  and %d more, which 'kubectl extension bundle rbac' prints", 1000-shown); shown == 0 || !strings.HasSuffix(message, want) {
		t.Errorf("%d rules are shown, and the message ends in %q", shown, message[len(message)-100:])
	}
	long := Lines([]Rule{rule("ns", "|"+strings.Repeat("ö", maxLine), "get")}, "")
	if len(long) > maxLine+len("…") || !utf8.ValidString(long) || !strings.HasSuffix(long, "…") {
		t.Errorf("a line of %d bytes ends in %q", len(long), long[len(long)-10:])
	}
}

// TestMissingForAPIServices (S6): an installer that has everything in its namespace is told what
// it lacks elsewhere, which is what its server needs to leave it to the cluster who may do what.
func TestMissingForAPIServices(t *testing.T) {
	t.Parallel()
	needs := needsOf(t, Content{Wanted: objects(t, anAPIService,
		bindingTo("kube-system", "Role", "extension-apiserver-authentication-reader", "op"),
		bindingTo("", "ClusterRole", "system:auth-delegator", "op"),
	)})
	held := newHeld(inNamespace("ns1", everything))
	want := []string{
		`Namespace:"" APIGroups:[apiregistration.k8s.io] Resources:[apiservices] ResourceNames:[v1.garden.test] Verbs:[delete,get,patch]`,
		`Namespace:"" APIGroups:[apiregistration.k8s.io] Resources:[apiservices] Verbs:[create]`,
		`Namespace:"" APIGroups:[rbac.authorization.k8s.io] Resources:[clusterrolebindings] ResourceNames:[bound] Verbs:[get,patch]`,
		`Namespace:"" APIGroups:[rbac.authorization.k8s.io] Resources:[clusterrolebindings] Verbs:[create]`,
		`Namespace:"" APIGroups:[rbac.authorization.k8s.io] Resources:[clusterroles] ResourceNames:[system:auth-delegator] Verbs:[bind]`,
		`Namespace:"kube-system" APIGroups:[rbac.authorization.k8s.io] Resources:[rolebindings] ResourceNames:[bound] Verbs:[get,patch]`,
		`Namespace:"kube-system" APIGroups:[rbac.authorization.k8s.io] Resources:[rolebindings] Verbs:[create]`,
		`Namespace:"kube-system" APIGroups:[rbac.authorization.k8s.io] Resources:[roles] ResourceNames:[extension-apiserver-authentication-reader] Verbs:[bind]`,
	}
	if diff := cmp.Diff(want, lines(Missing(needs, held))); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}
