package permission

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Gain is what a subject may do that it could not before.
type Gain struct {
	// Subject is who gains it, as in ServiceAccount "ns/name" or Group "name".
	Subject string

	// Rule has one resource and name. If Role is set, it has but a namespace.
	Rule Rule

	// Role is one whose rules are not among the objects: what it grants now and
	// later is for others to say. As in ClusterRole "name".
	Role string
}

// String is one line.
func (g Gain) String() string {
	if g.Role != "" {
		return fmt.Sprintf("%s: Namespace:%q all that %s grants", g.Subject, g.Rule.Namespace, g.Role)
	}
	return g.Subject + ": " + g.Rule.String()
}

// Growth are the rights that the wanted objects give and those before did not:
// the union of the rules of all roles that a subject is bound to, so that it does
// not matter what roles are called. Sorted. It fails when a role or a binding cannot be
// read.
func Growth(mapper Mapper, subject Subject, content Content) ([]Gain, error) {
	mapper = withDefinitions(mapper, slices.Concat(content.Wanted, content.Before))
	after, err := authorityOf(mapper, subject, content.Wanted)
	if err != nil {
		return nil, err
	}
	before, err := authorityOf(mapper, subject, content.Before)
	if err != nil {
		return nil, err
	}
	var gains []Gain
	for who, has := range after {
		gains = append(gains, has.beyond(who, before[who])...)
	}
	slices.SortFunc(gains, func(a, b Gain) int { return cmp.Compare(a.String(), b.String()) })
	return gains, nil
}

// authority is what a subject may do.
type authority struct {
	rules []Rule
	roles map[externalRole]struct{}
}

// externalRole is a role of others, and where it is given.
type externalRole struct {
	namespace, role string
}

func authorityOf(mapper Mapper, subject Subject, objects []*unstructured.Unstructured) (map[string]authority, error) {
	// Of kinds that the mapper does not know there are no roles or bindings.
	items, _ := itemsOf(mapper, subject, objects)
	roles, err := rolesOf(items)
	if err != nil {
		return nil, err
	}
	subjects := map[string]authority{}
	for _, item := range items {
		if !item.isBinding() {
			continue
		}
		bound, err := bindingOf(item)
		if err != nil {
			return nil, err
		}
		for _, subject := range bound.subjects {
			name := subjectName(subject, item.namespace)
			subjects[name] = subjects[name].with(bound.binding, roles)
		}
	}
	return subjects, nil
}

// subjectName completes a ServiceAccount as the API server does.
func subjectName(subject rbacv1.Subject, namespace string) string {
	name := subject.Name
	if subject.Kind == rbacv1.ServiceAccountKind {
		name = cmp.Or(subject.Namespace, namespace) + "/" + name
	}
	return fmt.Sprintf("%s %q", subject.Kind, name)
}

func (a authority) with(b binding, roles map[roleKey]role) authority {
	namespace := b.item.namespace
	known, found := roles[b.role]
	a.rules = append(a.rules, inNamespace(namespace, known.rules)...)
	if !found || known.aggregated {
		if a.roles == nil {
			a.roles = map[externalRole]struct{}{}
		}
		a.roles[externalRole{namespace: namespace, role: b.role.String()}] = struct{}{}
	}
	return a
}

// beyond is what an authority has and another one has not.
func (a authority) beyond(who string, other authority) []Gain {
	held := newHeld(other.rules)
	var more []Rule
	for _, rule := range a.rules {
		more = append(more, held.uncovered(rule)...)
	}
	var gains []Gain
	for _, rule := range merged(minimal(rightsOf(more))) {
		gains = append(gains, Gain{Subject: who, Rule: rule})
	}
	for role := range maps.Keys(a.roles) {
		_, had := other.roles[role]
		_, hadEverywhere := other.roles[externalRole{role: role.role}]
		if !had && !hadEverywhere {
			gains = append(gains, Gain{Subject: who, Rule: Rule{Namespace: role.namespace}, Role: role.role})
		}
	}
	return gains
}
