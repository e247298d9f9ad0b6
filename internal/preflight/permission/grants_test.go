package permission

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
)

// grantedRules are the rules of the roles among the documents.
func grantedRules(documents []Document) []Rule {
	var rules []Rule
	for _, document := range documents {
		switch role := document.Object.(type) {
		case *rbacv1.ClusterRole:
			rules = append(rules, inNamespace("", role.Rules)...)
		case *rbacv1.Role:
			rules = append(rules, inNamespace(role.Namespace, role.Rules)...)
		}
	}
	return rules
}

// checkGrants holds what is granted against what is needed: with all of it
// nothing is missing, and without a rule exactly that rule is.
func checkGrants(t *testing.T, needs Needs, subject Subject) {
	t.Helper()
	// Advice is held against the grants as if it were needed.
	needs.Access = slices.Concat(needs.Access, needs.Advice, needs.Logs)
	rules := grantedRules(Grants(needs, subject))
	if missing := Missing(needs, newHeld(rules)); len(missing) > 0 {
		t.Fatalf("with all that is granted there is missing:\n%s", strings.Join(lines(missing), "\n"))
	}
	for i, rule := range rules {
		rest := newHeld(slices.Delete(slices.Clone(rules), i, i+1))
		want, got := rightsOf([]Rule{rule}), rightsOf(Missing(needs, rest))
		if mayGrantMore(needs, rest.authority()) {
			removed := coverageOf([]Rule{rule})
			want = slices.DeleteFunc(slices.Clone(got), func(r right) bool { return !removed.covers(r) })
		}
		if diff := cmp.Diff(want, got, cmp.AllowUnexported(right{}), cmpopts.EquateEmpty()); diff != "" {
			t.Fatalf("without\n%s\n-granted +missing:\n%s", rule, diff)
		}
	}
}

// mayGrantMore is true of operators that may themselves escalate or bind: who
// holds that can do without the rest of what the operator may do.
func mayGrantMore(needs Needs, has authority) bool {
	return slices.ContainsFunc(needs.Escalations, func(e Escalation) bool {
		return e.Preferred == ByRules && e.isPermitted(has)
	})
}

func TestGrantsAreTheLeast(t *testing.T) {
	t.Parallel()
	tests := map[string]struct{ wanted, before []string }{
		"nothing":              {},
		"objects":              {wanted: []string{aConfigMap, aDefinition}},
		"an object is dropped": {wanted: []string{aConfigMap}, before: []string{aDefinition}},
		"roles and bindings": {wanted: []string{
			aRole, aClusterRole, bindingTo("ns2", "Role", "reader", "op"), bindingTo("", "ClusterRole", "reader", "op"),
		}},
		"roles of others": {wanted: []string{bindingTo("ns2", "ClusterRole", "view", "op"), bindingTo("", "ClusterRole", "edit", "op")}},
		"an API service": {wanted: []string{
			anAPIService, bindingTo("kube-system", "Role", "extension-apiserver-authentication-reader", "op"),
			bindingTo("", "ClusterRole", "system:auth-delegator", "op"),
		}},
		"an API service is dropped": {wanted: []string{aConfigMap}, before: []string{anAPIService}},
		"a role that gathers rules": {wanted: []string{
			anAggregatedRole, bindingTo("", "ClusterRole", "gathered", "op"),
		}},
		"the operator may do what its installer needs": {wanted: []string{
			aConfigMap,
			strings.Replace(aClusterRole, "resources: [secrets], verbs: [get]", `resources: ["*"], verbs: [create, list]`, 1),
		}},
		"the operator may do anything": {wanted: []string{
			aConfigMap, aRole, strings.NewReplacer(
				`{apiGroups: [""], resources: [secrets], verbs: [get]}`, `{apiGroups: ["*"], resources: ["*"], verbs: ["*"]}`,
				`[/metrics], verbs: [get]`, `["*"], verbs: ["*"]`,
			).Replace(aClusterRole),
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var content Content
			if len(test.wanted) > 0 {
				content.Wanted = objects(t, test.wanted...)
			}
			if len(test.before) > 0 {
				content.Before = objects(t, test.before...)
			}
			checkGrants(t, needsOf(t, content), who)
		})
	}
}

// What a check of definitions reads is granted with its reason, and never missing.
func TestGrantsToListWhatIsStored(t *testing.T) {
	t.Parallel()
	needs := needsOf(t, Content{Wanted: objects(t, aConfigMap)})
	needs.Stored = ToList([]schema.GroupResource{{Group: "example.com", Resource: "things"}})
	want := rbacv1.PolicyRule{APIGroups: []string{"example.com"}, Resources: []string{"things"}, Verbs: []string{"list"}}
	found := false
	for _, document := range Grants(needs, who) {
		role, ok := document.Object.(*rbacv1.ClusterRole)
		if !ok {
			continue
		}
		at := slices.IndexFunc(role.Rules, func(rule rbacv1.PolicyRule) bool { return cmp.Equal(rule, want) })
		found = at >= 0 && document.Reasons[at] == forStored
	}
	if !found {
		t.Errorf("no rule is %v for the reason %q in %v", want, forStored, Grants(needs, who))
	}
	needs.Access = nil
	if got := Missing(needs, Held{}); len(got) > 0 {
		t.Errorf("missing: %v", got)
	}
}

// A Role in a namespace that does not exist cannot be applied.
func TestGrantsForNamespacesOfTheContent(t *testing.T) {
	t.Parallel()
	content := Content{Wanted: objects(t, "apiVersion: v1\nkind: Namespace\nmetadata: {name: ns2}", aRole)}
	needs := needsOf(t, content)
	rules := grantedRules(Grants(needs, who))
	for _, rule := range rules {
		if rule.Namespace != "" {
			t.Errorf("granted in a namespace that is not there: %s", rule)
		}
	}
	if missing := Missing(needs, newHeld(rules)); len(missing) > 0 {
		t.Errorf("missing: %v", missing)
	}
}

func TestCompactAddsNothing(t *testing.T) {
	t.Parallel()
	rules := []Rule{
		rule("", "a|x:1", "get", "patch"), rule("", "a|x:2", "get", "patch"), rule("", "a|y:1", "get", "patch"),
		rule("", "a|y", "create"), rule("", "a|x", "create"), rule("", "b|x", "create"), rule("", "b|y", "create"),
		rule("", "b|z", "create", "list"), rule("", "b|z:1", "create,list", "get"),
		{PolicyRule: rbacv1.PolicyRule{NonResourceURLs: []string{"/a"}, Verbs: []string{"get"}}},
		{PolicyRule: rbacv1.PolicyRule{NonResourceURLs: []string{"/b"}, Verbs: []string{"get"}}},
	}
	joined := inNamespace("", compact(rightsOf(rules)))
	if diff := cmp.Diff(rightsOf(rules), rightsOf(joined), cmp.AllowUnexported(right{})); diff != "" {
		t.Errorf("-before +after:\n%s", diff)
	}
	if len(joined) != 6 {
		t.Errorf("%d rules are left:\n%s", len(joined), strings.Join(lines(joined), "\n"))
	}
}

// TestGrantsForRealBundles takes every bundle that can be installed, in every way
// in which it can be.
func TestGrantsForRealBundles(t *testing.T) {
	t.Parallel()
	dirs, err := filepath.Glob(filepath.Join(testkit.Corpus(t), "bundles", "*", "*"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no bundles: %v", err)
	}
	subject := Subject{Extension: "ext", Namespace: "install-ns", ServiceAccount: "installer"}
	for _, dir := range testkit.Sample(dirs) {
		for _, watched := range []string{"", subject.Namespace, "watch-ns", "watch-ns other-ns"} {
			t.Run(filepath.Base(filepath.Dir(dir))+"/"+filepath.Base(dir)+"/"+watched, func(t *testing.T) {
				t.Parallel()
				wanted := rendered(t, dir, subject.Namespace, watched)
				needs, err := NeedsOf(Guessed, subject, Content{Wanted: wanted})
				if err != nil {
					t.Fatal(err)
				}
				checkGrants(t, needs, subject)
				checkNoOwnWildcards(t, needs, subject)
			})
		}
	}
}

// rendered skips what cannot be installed so.
func rendered(t *testing.T, dir, namespace, watched string) []*unstructured.Unstructured {
	t.Helper()
	parsed, err := bundle.Parse(os.DirFS(dir))
	if err != nil {
		t.Skip("it cannot be installed:", err)
	}
	options := bundle.Options{InstallNamespace: namespace, Certificates: bundle.SelfManaged, Config: bundle.Config{WatchNamespaces: strings.Fields(watched)}}
	objects, err := rendering.Objects(bundle.Render(parsed, options))
	if err != nil {
		t.Skip("it cannot be installed so:", err)
	}
	return objects
}

// checkNoOwnWildcards finds wildcards that are not the operator's own.
func checkNoOwnWildcards(t *testing.T, needs Needs, subject Subject) {
	t.Helper()
	var own []Rule
	for _, escalation := range needs.Escalations {
		own = append(own, inNamespace(escalation.Namespace, escalation.Grants)...)
	}
	for _, r := range rightsOf(grantedRules(Grants(needs, subject))) {
		if isWild(r) && !slices.Contains(rightsOf(own), r) {
			t.Errorf("granted without need: %s", r.rule())
		}
	}
}

func isWild(r right) bool {
	return r.verb == rbacv1.VerbAll || r.group == rbacv1.APIGroupAll ||
		strings.HasPrefix(r.resource, rbacv1.ResourceAll) || strings.HasSuffix(r.url, "*")
}
