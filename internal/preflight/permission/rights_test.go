package permission

import (
	"errors"
	"fmt"
	"math/rand/v2"
	goruntime "runtime"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"
	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/fake"
	clienttesting "k8s.io/client-go/testing"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// words are as many texts, none of which is another one.
func words(prefix string, count int) []string {
	words := make([]string, count)
	for i := range words {
		words[i] = fmt.Sprintf("%s%d", prefix, i)
	}
	return words
}

// roleWith is a ClusterRole with a rule of so many groups, resources, verbs and names,
// after one that is small.
func roleWith(groups, resources, verbs, names int) *unstructured.Unstructured {
	list := func(prefix string, count int) []any {
		var list []any
		for _, word := range words(prefix, count) {
			list = append(list, word)
		}
		return list
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kindClusterRole, "metadata": map[string]any{"name": "wide"},
		"rules": []any{
			map[string]any{"apiGroups": []any{""}, "resources": []any{"pods"}, "verbs": []any{"get"}},
			map[string]any{
				"apiGroups": list("g", groups), "resources": list("r", resources), "verbs": list("v", verbs), "resourceNames": list("n", names),
			},
		},
	}}
}

// bindingWith gives the role of [roleWith] to as many subjects.
func bindingWith(subjects int) *unstructured.Unstructured {
	var list []any
	for _, name := range words("s", subjects) {
		list = append(list, map[string]any{"kind": "Group", "name": name})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": kindClusterRoleBinding, "metadata": map[string]any{"name": "all"},
		"roleRef":  map[string]any{"kind": kindClusterRole, "name": "wide"},
		"subjects": list,
	}}
}

// allocated is how many bytes a function takes, those that it gives back included.
func allocated(do func()) uint64 {
	var before, after goruntime.MemStats
	goruntime.ReadMemStats(&before)
	do()
	goruntime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// TestRightsOfABundleAreBounded: lists multiply, so that a short rule can stand for any
// number of rights.
func TestRightsOfABundleAreBounded(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	const next = "; write fewer groups, resources, verbs and names, or a wildcard"
	tests := map[string]struct {
		wanted []*unstructured.Unstructured
		want   string
	}{
		"as many as there may be": {wanted: []*unstructured.Unstructured{roleWith(1, 499, 100, 1)}},
		"a rule": {
			wanted: []*unstructured.Unstructured{roleWith(100, 100, 100, 100)},
			want: `ClusterRole "wide" is beyond the 50000 rights that the roles and bindings of a bundle may grant: ` +
				`its rule 2 has 100 groups, 100 resources, 100 verbs and 100 names, which are multiplied` + next,
		},
		"a rule whose product is beyond all numbers": {
			wanted: []*unstructured.Unstructured{roleWith(1<<16, 1<<16, 1<<16, 1<<16)},
			want: `ClusterRole "wide" is beyond the 50000 rights that the roles and bindings of a bundle may grant: ` +
				`its rule 2 has 65536 groups, 65536 resources, 65536 verbs and 65536 names, which are multiplied` + next,
		},
		"a role that is bound": {
			wanted: []*unstructured.Unstructured{roleWith(3, 100, 100, 1), bindingWith(1)},
			want: `ClusterRoleBinding "all" is beyond the 50000 rights that the roles and bindings of a bundle may grant: ` +
				`it gives the 30001 of ClusterRole "wide" to 1 subject` + next,
		},
		"a role that is given to many": {
			wanted: []*unstructured.Unstructured{roleWith(1, 100, 5, 0), bindingWith(100)},
			want: `ClusterRoleBinding "all" is beyond the 50000 rights that the roles and bindings of a bundle may grant: ` +
				`it gives the 501 of ClusterRole "wide" to 100 subjects` + next,
		},
	}
	for name, tc := range tests { //nolint:paralleltest // it measures memory
		t.Run(name, func(t *testing.T) {
			var needed, grown error
			taken := allocated(func() {
				_, needed = NeedsOf(Guessed, who, Content{Wanted: tc.wanted})
				_, grown = Growth(Guessed, who, Content{Wanted: tc.wanted})
			})
			for _, err := range []error{needed, grown} {
				if (err == nil) != (tc.want == "") || err != nil && err.Error() != tc.want {
					t.Errorf("err = %v\nwant  %s", err, tc.want)
				}
			}
			if limit := uint64(128 << 20); taken > limit {
				t.Errorf("it takes %d bytes, at most %d are right", taken, limit)
			}
		})
	}
}

// TestRightsThatAreHeldTakeLittle: what a ServiceAccount holds is not the bundle's to
// bound, and counts however it is written.
func TestRightsThatAreHeldTakeLittle(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	wide := rbacv1.PolicyRule{
		APIGroups: append(words("g", 100), ""), Resources: append(words("r", 100), "configmaps", "*/scale"),
		Verbs: append(words("v", 100), "get", "patch", "create"), NonResourceURLs: append(words("/u", 100), "/all*"),
	}
	named := wide
	named.ResourceNames = append(words("n", 100), "settings")
	tests := map[string]struct {
		held []rbacv1.PolicyRule
		rule Rule
		want []string
	}{
		"all names":      {held: []rbacv1.PolicyRule{wide}, rule: rule("ns1", "|configmaps:x", "get", "patch")},
		"a name":         {held: []rbacv1.PolicyRule{named}, rule: rule("ns1", "|configmaps:settings", "get")},
		"another name":   {held: []rbacv1.PolicyRule{named}, rule: rule("ns1", "|configmaps:x", "get"), want: []string{`Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[x] Verbs:[get]`}},
		"a subresource":  {held: []rbacv1.PolicyRule{wide}, rule: rule("ns1", "g1|any/scale", "v1")},
		"another verb":   {held: []rbacv1.PolicyRule{wide}, rule: rule("ns1", "|configmaps", "delete"), want: []string{`Namespace:"ns1" APIGroups:[] Resources:[configmaps] Verbs:[delete]`}},
		"a URL":          {held: []rbacv1.PolicyRule{wide}, rule: Rule{PolicyRule: rbacv1.PolicyRule{NonResourceURLs: []string{"/u7", "/all/of"}, Verbs: []string{"get"}}}},
		"of two of them": {held: []rbacv1.PolicyRule{named, wide}, rule: rule("", "g2|r3", "v4")},
	}
	for name, tc := range tests { //nolint:paralleltest // it measures memory
		t.Run(name, func(t *testing.T) {
			var missing []Rule
			taken := allocated(func() {
				missing = Missing(Needs{Access: []Rule{tc.rule}}, Held{Everywhere: tc.held})
			})
			if diff := cmp.Diff(append([]string{}, tc.want...), lines(missing)); diff != "" {
				t.Errorf("missing (-want +got):\n%s", diff)
			}
			if limit := uint64(64 << 20); taken > limit {
				t.Errorf("it takes %d bytes, at most %d are right", taken, limit)
			}
		})
	}
}

// TestCoversAsTheAPIServerDoes holds what is looked up, and what is looked through,
// against the comparison of RBAC.
func TestCoversAsTheAPIServerDoes(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	random := rand.New(rand.NewPCG(1, 2))
	some := func(from ...string) []string {
		var list []string
		for range 1 + random.IntN(3) {
			list = append(list, from[random.IntN(len(from))])
		}
		return list
	}
	anyRule := func() rbacv1.PolicyRule {
		rule := rbacv1.PolicyRule{Verbs: some("get", "list", "*")}
		if random.IntN(3) == 0 {
			rule.NonResourceURLs = some("/a", "/a*", "/a**", "/a/b", "/a/b*", "/a/*", "/", "*", "/b/c", "/ab*")
			return rule
		}
		rule.APIGroups = some("", "g", "h", "*")
		rule.Resources = some("a", "b", "a/s", "b/s", "b/t", "*/s", "*", "a/s/u", "*x")
		if random.IntN(3) == 0 {
			rule.ResourceNames = some("x", "y")
		}
		return rule
	}
	covered := 0
	for range 20_000 {
		owned := make([]rbacv1.PolicyRule, 1+random.IntN(4))
		for i := range owned {
			owned[i] = anyRule()
		}
		wanted := anyRule()
		want, _ := validation.Covers(owned, []rbacv1.PolicyRule{wanted})
		lookedUp, lookedThrough := coverageOf(inNamespace("", owned)), newCoverage()
		for _, rule := range owned {
			lookedThrough.wide[""] = append(lookedThrough.wide[""], wideRuleOf(rule))
		}
		for how, has := range map[string]coverage{"looked up": lookedUp, "looked through": lookedThrough} {
			if left := has.uncovered(Rule{Namespace: "n", PolicyRule: wanted}); (len(left) == 0) != want {
				t.Fatalf("%s: %v covers %v: %t, want %t; left are %v", how, owned, wanted, len(left) == 0, want, left)
			}
		}
		// What is left out of rights is included in those that stay.
		all := rightsOf(inNamespace("", owned))
		kept := minimal(all)
		has := coverageOf(rulesOf(kept))
		for _, r := range all {
			if !has.covers(r) {
				t.Fatalf("%v is not in %v, of %v", r, kept, owned)
			}
		}
		for _, r := range kept {
			if more, _ := validation.Covers(policyRulesOf(without(kept, r)), []rbacv1.PolicyRule{r.rule().PolicyRule}); more {
				t.Fatalf("%v is in others of %v", r, kept)
			}
		}
		if want {
			covered++
		}
	}
	if covered < 1000 || covered > 19_000 {
		t.Errorf("%d of 20000 are covered, which shows little", covered)
	}
}

func without(rights []right, r right) []right {
	return slices.DeleteFunc(slices.Clone(rights), func(other right) bool { return other == r })
}

func policyRulesOf(rights []right) []rbacv1.PolicyRule {
	var rules []rbacv1.PolicyRule
	for _, r := range rights {
		rules = append(rules, r.rule().PolicyRule)
	}
	return rules
}

// TestWideRolesOfOthersAreAskedAbout: the API server judges a binding to a role that
// grants more than is compared.
func TestWideRolesOfOthersAreAskedAbout(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		refuses bool
		want    []string
	}{
		"it takes the binding": {},
		"it refuses it": {refuses: true, want: []string{
			`Namespace:"" APIGroups:[rbac.authorization.k8s.io] Resources:[clusterroles] ResourceNames:[wide] Verbs:[bind]`,
		}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			api := fake.NewClientset(&rbacv1.ClusterRole{
				ObjectMeta: metav1.ObjectMeta{Name: "wide"},
				Rules: []rbacv1.PolicyRule{{
					APIGroups: words("g", 100), Resources: words("r", 100), Verbs: words("v", 100), ResourceNames: words("n", 100),
				}},
			})
			api.PrependReactor("create", "selfsubjectrulesreviews", func(clienttesting.Action) (bool, runtime.Object, error) {
				return true, &authorizationv1.SelfSubjectRulesReview{Status: authorizationv1.SubjectRulesReviewStatus{
					ResourceRules: []authorizationv1.ResourceRule{{
						APIGroups: []string{"*"}, Resources: []string{"clusterrolebindings"}, Verbs: []string{"get", "create", "patch"},
					}},
				}}, nil
			})
			asked := false
			api.PrependReactor("create", "clusterrolebindings", func(action clienttesting.Action) (bool, runtime.Object, error) {
				asked = true
				if options := action.(clienttesting.CreateActionImpl).CreateOptions; !slices.Equal(options.DryRun, []string{metav1.DryRunAll}) {
					t.Error("the binding is made, and not only tried")
				}
				if tc.refuses {
					return true, nil, apierrors.NewForbidden(schema.GroupResource{Resource: "clusterrolebindings"}, "all", nil)
				}
				return true, &rbacv1.ClusterRoleBinding{}, nil
			})
			needs := needsOf(t, Content{Wanted: []*unstructured.Unstructured{bindingWith(2)}})
			err := Check(t.Context(), Clients{Authorization: api.AuthorizationV1(), RBAC: api.RbacV1()}, needs)
			var got []string
			if missing, ok := errors.AsType[*MissingError](err); ok {
				got = lines(missing.Rules)
			} else if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" || !asked {
				t.Errorf("asked: %t; missing (-want +got):\n%s", asked, diff)
			}
		})
	}
}

// TestGrowthOfWideRoles: what was installed when there was no bound stands in the way
// of nothing.
func TestGrowthOfWideRoles(t *testing.T) {
	t.Parallel()
	gains, err := Growth(Guessed, who, Content{
		Wanted: []*unstructured.Unstructured{roleWith(1, 1, 1, 1), bindingWith(1)},
		Before: []*unstructured.Unstructured{roleWith(100, 100, 100, 1), bindingWith(1)},
	})
	want := []string{`Group "s0": Namespace:"" APIGroups:[""] Resources:[pods] Verbs:[get]`, `Group "s0": Namespace:"" APIGroups:[g0] Resources:[r0] ResourceNames:[n0] Verbs:[v0]`}
	if diff := cmp.Diff(want, lines(gains)); diff != "" || err != nil {
		t.Errorf("err = %v, gains (-want +got):\n%s", err, diff)
	}
}

// TestWildRightsTakeLinearly: twice the rights take about twice the memory, whichever
// of them include others.
func TestWildRightsTakeLinearly(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	tests := map[string]func(count int) rbacv1.PolicyRule{
		"verbs": func(count int) rbacv1.PolicyRule {
			return rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: words("r", count), Verbs: []string{"*"}}
		},
		"subresources": func(count int) rbacv1.PolicyRule {
			return rbacv1.PolicyRule{APIGroups: []string{"g"}, Resources: words("*/r", count), Verbs: []string{"get"}}
		},
		"URLs": func(count int) rbacv1.PolicyRule {
			urls := words("/u", count)
			for i := range urls {
				urls[i] += "/*"
			}
			return rbacv1.PolicyRule{NonResourceURLs: urls, Verbs: []string{"get"}}
		},
	}
	for name, wild := range tests { //nolint:paralleltest // it measures memory
		t.Run(name, func(t *testing.T) {
			var kept []Rule
			measure := func(count int) uint64 {
				needs := Needs{Access: inNamespace("", []rbacv1.PolicyRule{wild(count)})}
				return allocated(func() { kept = Missing(needs, Held{}) })
			}
			few, many := measure(250), measure(2000)
			if len(kept) != 2000 {
				t.Errorf("%d rights are missing, want 2000", len(kept))
			}
			if many > 24*few {
				t.Errorf("8 times the rights take %d bytes rather than %d, which is %d times as much", many, few, many/few)
			}
		})
	}
}

// TestGrantsTakeLinearly is about names that are joined in one rule.
func TestGrantsTakeLinearly(t *testing.T) { //nolint:paralleltest // it measures memory
	testkit.WithoutRace(t)
	measure := func(count int) uint64 {
		named := rule("ns1", "|configmaps", "get")
		named.ResourceNames = words("n", count)
		needs := Needs{Access: []Rule{named}}
		var documents []Document
		taken := allocated(func() { documents = Grants(needs, who) })
		role := documents[1].Object.(*rbacv1.Role)
		if len(role.Rules) != 1 || len(role.Rules[0].ResourceNames) != count || !slices.IsSorted(role.Rules[0].ResourceNames) {
			t.Errorf("rules = %v, want one with %d names, sorted", role.Rules, count)
		}
		return taken
	}
	if few, many := measure(250), measure(2000); many > 24*few {
		t.Errorf("8 times the names take %d bytes rather than %d, which is %d times as much", many, few, many/few)
	}
}
