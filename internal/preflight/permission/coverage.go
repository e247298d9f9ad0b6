package permission

import (
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/component-helpers/auth/rbac/validation"
)

// coverage answers as [validation.Covers] does, without holding each right
// against each rule: large bundles take thousands of rights.
type coverage struct {
	exact map[right]struct{}

	// wild are the rules with wildcards by namespace, of which there are few.
	wild map[string][]rbacv1.PolicyRule
}

func coverageOf(rules []Rule) coverage {
	c := coverage{exact: map[right]struct{}{}, wild: map[string][]rbacv1.PolicyRule{}}
	c.add(rules...)
	return c
}

func (c coverage) add(rules ...Rule) {
	for r := range rightSet(rules) {
		if r.isWild() {
			c.wild[r.namespace] = append(c.wild[r.namespace], r.rule().PolicyRule)
		} else {
			c.exact[r] = struct{}{}
		}
	}
}

func (c coverage) covers(r right) bool {
	if includes(c.exact, r) {
		return true
	}
	wanted := []rbacv1.PolicyRule{r.rule().PolicyRule}
	if covered, _ := validation.Covers(c.wild[""], wanted); covered {
		return true
	}
	covered, _ := validation.Covers(c.wild[r.namespace], wanted)
	return covered
}

// uncovered are the parts of a rule that no rule covers, in any order.
func (c coverage) uncovered(rule Rule) []right {
	var left []right
	for r := range rightSet([]Rule{rule}) {
		if !c.covers(r) {
			left = append(left, r)
		}
	}
	return left
}

// includes finds a right, the same for all names, everywhere, or both.
func includes(set map[right]struct{}, r right) bool {
	if _, found := set[r]; found {
		return true
	}
	return includesMore(set, r)
}

// includesMore finds a right for all names, everywhere, or both.
func includesMore(set map[right]struct{}, r right) bool {
	unnamed, everywhere, both := r, r, r
	unnamed.name, everywhere.namespace, both.name, both.namespace = "", "", "", ""
	for _, more := range []right{unnamed, everywhere, both} {
		if _, found := set[more]; found && more != r {
			return true
		}
	}
	return false
}
