package permission

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// Rule is a set of rights in one namespace, or everywhere.
type Rule struct {
	// Namespace is empty for rights that have to hold cluster-wide.
	Namespace string

	rbacv1.PolicyRule
}

// String is the line that the reference implementation writes for a rule:
//
//	Namespace:"ns" APIGroups:[apps] Resources:[deployments] ResourceNames:[x] Verbs:[get,patch]
//
// It writes nothing for the name of the core group, where [Rule.Text] has what one
// writes in a role.
func (r Rule) String() string { return r.line(r.APIGroups) }

// Text is the line with the core group as in RBAC: "".
func (r Rule) Text() string {
	groups := slices.Clone(r.APIGroups)
	for i, group := range groups {
		if group == "" {
			groups[i] = `""`
		}
	}
	return r.line(groups)
}

func (r Rule) line(groups []string) string {
	var line strings.Builder
	line.WriteString(`Namespace:"` + r.Namespace + `"`)
	for _, part := range []struct {
		key    string
		values []string
	}{
		{"APIGroups", groups},
		{"Resources", r.Resources},
		{"ResourceNames", r.ResourceNames},
		{"Verbs", r.Verbs},
		{"NonResourceURLs", r.NonResourceURLs},
	} {
		if len(part.values) > 0 {
			line.WriteString(" " + part.key + ":[" + strings.Join(slices.Sorted(slices.Values(part.values)), ",") + "]")
		}
	}
	return line.String()
}

// right is one verb on one resource, all of it or one of a name, or on one URL:
// the smallest part of a rule.
type right struct {
	namespace, group, resource, name, verb, url string
}

// rule is the right as a rule of its own.
func (r right) rule() Rule {
	rule := Rule{Namespace: r.namespace, PolicyRule: rbacv1.PolicyRule{Verbs: []string{r.verb}}}
	if r.url != "" {
		rule.NonResourceURLs = []string{r.url}
		return rule
	}
	rule.APIGroups, rule.Resources = []string{r.group}, []string{r.resource}
	if r.name != "" {
		rule.ResourceNames = []string{r.name}
	}
	return rule
}

// attributes is the right as one asks about it.
func (r right) attributes() *authorizationv1.ResourceAttributes {
	resource, subresource, _ := strings.Cut(r.resource, "/")
	return &authorizationv1.ResourceAttributes{
		Namespace: r.namespace, Verb: r.verb, Group: r.group, Resource: resource, Subresource: subresource, Name: r.name,
	}
}

// compareRights is in the order of resources rather than verbs, so that what
// belongs together stands together.
func compareRights(a, b right) int {
	return cmp.Or(
		cmp.Compare(a.namespace, b.namespace), cmp.Compare(a.url, b.url), cmp.Compare(a.group, b.group),
		cmp.Compare(a.resource, b.resource), cmp.Compare(a.name, b.name), cmp.Compare(a.verb, b.verb),
	)
}

// each takes a rule apart. A right may come more than once.
func (r Rule) each(visit func(right)) {
	names := r.ResourceNames
	if len(names) == 0 {
		names = []string{""}
	}
	for _, verb := range r.Verbs {
		for _, url := range r.NonResourceURLs {
			visit(right{namespace: r.Namespace, url: url, verb: verb})
		}
		for _, group := range r.APIGroups {
			for _, resource := range r.Resources {
				for _, name := range names {
					visit(right{namespace: r.Namespace, group: group, resource: resource, name: name, verb: verb})
				}
			}
		}
	}
}

// sizeOf is how many rights a rule is made of, up to limit, and limit+1 for more.
func sizeOf(rule rbacv1.PolicyRule, limit int) int {
	size := 1
	for _, factor := range []int{len(rule.APIGroups), len(rule.Resources), max(1, len(rule.ResourceNames)), len(rule.Verbs)} {
		size = min(size*factor, limit+1)
	}
	return min(size+min(len(rule.NonResourceURLs)*len(rule.Verbs), limit+1), limit+1)
}

// sizeOfAll counts like [sizeOf].
func sizeOfAll(rules []rbacv1.PolicyRule, limit int) int {
	size := 0
	for _, rule := range rules {
		size = min(size+sizeOf(rule, limit), limit+1)
	}
	return size
}

// rightsOf takes rules apart, without duplicates, sorted.
func rightsOf(rules []Rule) []right {
	return slices.SortedFunc(maps.Keys(rightSet(rules)), compareRights)
}

func rightSet(rules []Rule) map[right]struct{} {
	set := map[right]struct{}{}
	for _, rule := range rules {
		rule.each(func(r right) { set[r] = struct{}{} })
	}
	return set
}

// inNamespace makes rules of one place out of those of RBAC.
func inNamespace(namespace string, rules []rbacv1.PolicyRule) []Rule {
	located := make([]Rule, len(rules))
	for i, rule := range rules {
		located[i] = Rule{Namespace: namespace, PolicyRule: rule}
	}
	return located
}

// minimal leaves out the rights that another of them includes. Sorted.
func minimal(rights []right) []right {
	rights = slices.SortedFunc(slices.Values(rights), compareRights)
	rights = slices.Compact(rights)
	all := newCoverage()
	for _, r := range rights {
		all.rights[r] = struct{}{}
	}
	all.index(rights)
	return slices.DeleteFunc(rights, all.includesMore)
}

// rulesOf makes a rule of each right.
func rulesOf(rights []right) []Rule {
	rules := make([]Rule, len(rights))
	for i, r := range rights {
		rules[i] = r.rule()
	}
	return rules
}

// merged makes rules of rights, one for each resource and name, with all verbs.
func merged(rights []right) []Rule {
	verbs := map[right][]string{}
	for _, r := range rights {
		target := r
		target.verb = ""
		verbs[target] = append(verbs[target], r.verb)
	}
	rules := make([]Rule, 0, len(verbs))
	for _, target := range slices.SortedFunc(maps.Keys(verbs), compareRights) {
		rule := target.rule()
		rule.Verbs = slices.Compact(slices.Sorted(slices.Values(verbs[target])))
		if slices.Contains(rule.Verbs, rbacv1.VerbAll) {
			rule.Verbs = []string{rbacv1.VerbAll}
		}
		rules = append(rules, rule)
	}
	return rules
}

// sortedLines sorts rules as their lines are.
func sortedLines(rules []Rule) []Rule {
	slices.SortFunc(rules, func(a, b Rule) int { return cmp.Compare(a.String(), b.String()) })
	return rules
}
