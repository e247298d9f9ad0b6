package permission

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// Held is what a ServiceAccount may do, however it came by it.
type Held struct {
	// Everywhere are the rules that hold cluster-wide.
	Everywhere []rbacv1.PolicyRule

	// Namespaces are the rules that hold in a namespace, beside those that hold
	// everywhere.
	Namespaces map[string][]rbacv1.PolicyRule

	// Incomplete says that there are authorizers that do not tell their rules:
	// more may be allowed than is held.
	Incomplete bool

	// allowed are rights that such an authorizer gave on request. They do not
	// count for granting them on: RBAC looks at its own rules for that.
	allowed map[right]struct{}
}

// newHeld is for who holds exactly these rules.
func newHeld(rules []Rule) Held {
	held := Held{Namespaces: map[string][]rbacv1.PolicyRule{}}
	for _, rule := range rules {
		held.add(rule)
	}
	return held
}

func (h *Held) add(rule Rule) {
	if rule.Namespace == "" {
		h.Everywhere = append(h.Everywhere, rule.PolicyRule)
		return
	}
	h.Namespaces[rule.Namespace] = append(h.Namespaces[rule.Namespace], rule.PolicyRule)
}

// uncovered are the parts of a rule that are not held.
func (h *Held) uncovered(rule Rule) []Rule {
	_, left := validation.Covers(h.Everywhere, []rbacv1.PolicyRule{rule.PolicyRule})
	if rule.Namespace != "" && len(left) > 0 {
		_, left = validation.Covers(h.Namespaces[rule.Namespace], left)
	}
	return inNamespace(rule.Namespace, left)
}

func (h *Held) covers(rule Rule) bool { return len(h.uncovered(rule)) == 0 }

// refused are the parts of a rule that the API server would not allow.
func (h *Held) refused(rule Rule) []Rule {
	left := h.uncovered(rule)
	if len(h.allowed) == 0 {
		return left
	}
	var refused []Rule
	for _, r := range rightsOf(left) {
		if _, found := h.allowed[r]; !found && !includedByTwin(h.allowed, r) {
			refused = append(refused, r.rule())
		}
	}
	return refused
}
