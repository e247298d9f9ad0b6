package permission

import (
	rbacv1 "k8s.io/api/rbac/v1"
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
}

// authority is what is held, made for looking things up.
type authority struct {
	rules coverage

	// allowed are rights that an authorizer gave on request that does not tell its
	// rules. They do not count for granting them on: RBAC looks at its own rules
	// for that.
	allowed map[right]struct{}
}

func (h Held) authority() authority {
	rules := coverageOf(inNamespace("", h.Everywhere))
	for namespace, held := range h.Namespaces {
		rules.add(inNamespace(namespace, held)...)
	}
	return authority{rules: rules}
}

// refused are the parts of a rule that the API server would not allow.
func (a authority) refused(rule Rule) []right {
	var refused []right
	for _, r := range a.rules.uncovered(rule) {
		if !includes(a.allowed, r) {
			refused = append(refused, r)
		}
	}
	return refused
}
