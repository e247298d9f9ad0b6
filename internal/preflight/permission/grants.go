package permission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// Document is an object of a manifest.
type Document struct {
	// Object is a ServiceAccount, a role or a binding, with its type.
	Object any

	// Reasons say why the rules of a role are there, each of them for the rule of
	// that index and those after it.
	Reasons map[int]string
}

// Why a rule is granted, in the order in which rules stand in a role.
const (
	forObjects    = "The objects of the bundle, by name where rights can be limited to names."
	forDropped    = "What the version before has and this one has not: for the upgrade only."
	forHooks      = "Hooks of the chart: to run them, to delete them, and to delete all else before the last of them."
	forStored     = "To check stored objects before definitions become stricter or go: for the upgrade only."
	forOperator   = "What the operator may do: nobody can grant what they do not hold."
	forOthers     = "Roles that are not the bundle's own, or that gather the rules of others."
	forLogs       = "To tell the last line of a hook that has failed."
	forWatching   = "To notice changes at once. Without, they are found within minutes."
	forFinalizers = "Only where the admission plugin OwnerReferencesPermissionEnforcement is on."
)

// Grants is the subject's ServiceAccount with all needs and all advice, and no
// more: a ClusterRole for what has to hold everywhere, a Role in each namespace,
// and their bindings. In namespaces that the content brings nothing can be
// granted beforehand, so that rights there are granted everywhere.
func Grants(needs Needs, subject Subject) []Document {
	documents := []Document{{Object: &corev1.ServiceAccount{
		TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: rbacv1.ServiceAccountKind},
		ObjectMeta: metav1.ObjectMeta{Namespace: subject.Namespace, Name: subject.ServiceAccount},
	}}}
	byNamespace := map[string][]reasonedRight{}
	for _, granted := range needs.grantable() {
		byNamespace[granted.namespace] = append(byNamespace[granted.namespace], granted)
	}
	for _, namespace := range slices.Sorted(maps.Keys(byNamespace)) {
		rules, reasons := rulesWithReasons(byNamespace[namespace])
		documents = append(documents,
			Document{Object: roleFor(subject, namespace, rules), Reasons: reasons},
			Document{Object: bindingFor(subject, namespace)})
	}
	return documents
}

// reasonedRight is a right and the first reason to grant it.
type reasonedRight struct {
	right

	reason string
}

// grantable are all rights, none of which another includes. What is needed is
// never included in what is only advised, so that the latter can be left out.
func (n Needs) grantable() []reasonedRight {
	reasons := map[right]string{}
	note := func(rules []Rule, reason string) []Rule {
		rules = n.grantedWhereItCan(rules)
		for _, r := range rightsOf(rules) {
			reasons[r] = cmp.Or(reasons[r], reason)
		}
		return rules
	}
	var needed []Rule
	for _, rule := range n.Access {
		reason := forObjects
		if slices.Contains(rule.Verbs, verbDelete) && !isOfRegistration(rule) {
			reason = forDropped
		}
		needed = append(needed, note([]Rule{rule}, reason)...)
	}
	for _, escalation := range n.Escalations {
		reason := forOperator
		if escalation.Preferred == ByPermit {
			reason = forOthers
		}
		needed = append(needed, note(escalation.least(), reason)...)
	}
	needed = append(needed, note(n.Hooks, forHooks)...)
	needed = append(needed, note(n.Stored, forStored)...)
	var granted []reasonedRight
	for _, r := range minimal(rightsOf(needed)) {
		granted = append(granted, reasonedRight{right: r, reason: reasons[r]})
	}
	has := coverageOf(needed)
	logs := rightSet(n.grantedWhereItCan(n.Logs))
	for _, r := range minimal(rightsOf(n.grantedWhereItCan(slices.Concat(n.Advice, n.Logs)))) {
		if has.covers(r) {
			continue
		}
		reason := forWatching
		switch {
		case r.verb == verbUpdate:
			reason = forFinalizers
		case includes(logs, r):
			reason = forLogs
		}
		granted = append(granted, reasonedRight{right: r, reason: reason})
	}
	return granted
}

// isOfRegistration is true of the rights to an API service that is wanted, which include its
// deletion.
func isOfRegistration(rule Rule) bool {
	return slices.Contains(rule.APIGroups, groupRegistrations) && slices.Contains(rule.Verbs, verbPatch)
}

// grantedWhereItCan moves rules out of namespaces that do not exist yet.
func (n Needs) grantedWhereItCan(rules []Rule) []Rule {
	moved := slices.Clone(rules)
	for i := range moved {
		if _, created := n.created[moved[i].Namespace]; created {
			moved[i].Namespace = ""
		}
	}
	return moved
}

// rulesWithReasons makes as few rules as there can be for each reason.
func rulesWithReasons(granted []reasonedRight) ([]rbacv1.PolicyRule, map[int]string) {
	var rules []rbacv1.PolicyRule
	reasons := map[int]string{}
	for _, reason := range []string{forObjects, forDropped, forHooks, forStored, forOperator, forOthers, forLogs, forWatching, forFinalizers} {
		var rights []right
		for _, r := range granted {
			if r.reason == reason {
				rights = append(rights, r.right)
			}
		}
		if len(rights) > 0 {
			reasons[len(rules)] = reason
			rules = append(rules, compact(rights)...)
		}
	}
	return rules, reasons
}

// compact makes as few rules of rights in one namespace as can be had by joining
// those that differ in verbs only, then in names only, and so on, which adds
// nothing to them.
func compact(rights []right) []rbacv1.PolicyRule {
	rules := make([]rbacv1.PolicyRule, 0, len(rights))
	for _, rule := range merged(rights) {
		rules = append(rules, rule.PolicyRule)
	}
	for _, list := range []func(*rbacv1.PolicyRule) *[]string{
		func(r *rbacv1.PolicyRule) *[]string { return &r.ResourceNames },
		func(r *rbacv1.PolicyRule) *[]string { return &r.Resources },
		func(r *rbacv1.PolicyRule) *[]string { return &r.APIGroups },
		func(r *rbacv1.PolicyRule) *[]string { return &r.NonResourceURLs },
	} {
		rules = joined(rules, list)
	}
	return rules
}

// joined joins the rules that differ in nothing but one list, which neither of
// them has empty: an empty one stands for all or for none. The order stays.
func joined(rules []rbacv1.PolicyRule, list func(*rbacv1.PolicyRule) *[]string) []rbacv1.PolicyRule {
	var result []rbacv1.PolicyRule
	position := map[string]int{}
	values := map[int][]string{} // of rules that others are joined to
	for _, rule := range rules {
		own := *list(&rule)
		rest := rule
		*list(&rest) = nil
		key := fmt.Sprintf("%q", [][]string{rest.APIGroups, rest.Resources, rest.ResourceNames, rest.Verbs, rest.NonResourceURLs})
		at, found := position[key]
		switch {
		case len(own) == 0:
			result = append(result, rule)
		case found:
			values[at] = append(values[at], own...)
		default:
			position[key] = len(result)
			result = append(result, rule)
		}
	}
	for at, more := range values {
		all := list(&result[at])
		*all = slices.Compact(slices.Sorted(slices.Values(slices.Concat(*all, more))))
	}
	return result
}

// grantName is unique in the cluster for each extension of a ServiceAccount: what one of
// them needs does not replace what another does. None of the names has a colon. Without
// the name of an extension all of them share the roles.
func (s Subject) grantName() string {
	name := s.Namespace + ":" + s.ServiceAccount
	if s.Extension != "" {
		name += ":" + s.Extension
	}
	return name
}

func roleFor(subject Subject, namespace string, rules []rbacv1.PolicyRule) any {
	metadata := metav1.ObjectMeta{Namespace: namespace, Name: subject.grantName()}
	if namespace == "" {
		return &rbacv1.ClusterRole{TypeMeta: typeOf(kindClusterRole), ObjectMeta: metadata, Rules: rules}
	}
	return &rbacv1.Role{TypeMeta: typeOf(kindRole), ObjectMeta: metadata, Rules: rules}
}

func bindingFor(subject Subject, namespace string) any {
	metadata := metav1.ObjectMeta{Namespace: namespace, Name: subject.grantName()}
	subjects := []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: subject.Namespace, Name: subject.ServiceAccount}}
	ref := rbacv1.RoleRef{APIGroup: groupRBAC, Kind: kindRole, Name: subject.grantName()}
	if namespace == "" {
		ref.Kind = kindClusterRole
		return &rbacv1.ClusterRoleBinding{
			TypeMeta: typeOf(kindClusterRoleBinding), ObjectMeta: metadata, RoleRef: ref, Subjects: subjects,
		}
	}
	return &rbacv1.RoleBinding{TypeMeta: typeOf(kindRoleBinding), ObjectMeta: metadata, RoleRef: ref, Subjects: subjects}
}

func typeOf(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}
