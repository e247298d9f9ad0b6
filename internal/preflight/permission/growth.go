package permission

import (
	"cmp"
	"errors"
	"fmt"
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
	return g.Subject + ": " + g.Rule.Text()
}

// Growth are the rights that the wanted objects give and those before did not:
// the union of the rules of all roles that a subject is bound to, so that it does
// not matter what roles are called. Sorted. It fails when a role or a binding cannot be
// read, and when the wanted ones grant more than is compared.
func Growth(mapper Mapper, subject Subject, content Content) ([]Gain, error) {
	mapper = withDefinitions(mapper, slices.Concat(content.Wanted, content.Before))
	after, err := givenTo(mapper, subject, content.Wanted)
	if err != nil {
		return nil, err
	}
	before, err := givenTo(mapper, subject, content.Before)
	if _, ok := errors.AsType[*grantsError](err); err != nil && !ok {
		return nil, err
	}
	// What was installed when there was no bound counts as nothing: all of it is told.
	var gains []Gain
	for who, has := range after {
		gains = append(gains, has.beyond(who, before[who])...)
	}
	slices.SortFunc(gains, func(a, b Gain) int { return cmp.Compare(a.String(), b.String()) })
	return gains, nil
}

// given is what bindings give to a subject.
type given struct {
	rules []Rule
	roles map[externalRole]struct{}
}

// externalRole is a role of others, and where it is given.
type externalRole struct {
	namespace, role string
}

func givenTo(mapper Mapper, subject Subject, objects []*unstructured.Unstructured) (map[string]given, error) {
	// Of kinds that the mapper does not know there are no roles or bindings.
	items, _ := itemsOf(mapper, subject, objects)
	roles, left, err := rolesOf(items)
	if err != nil {
		return nil, err
	}
	subjects := map[string]given{}
	for _, item := range items {
		if !item.isBinding() {
			continue
		}
		bound, err := bindingOf(item, roles, &left)
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

func (g given) with(b binding, roles map[roleKey]role) given {
	namespace := b.item.namespace
	known, found := roles[b.role]
	g.rules = append(g.rules, inNamespace(namespace, known.rules)...)
	if !found || known.aggregated {
		if g.roles == nil {
			g.roles = map[externalRole]struct{}{}
		}
		g.roles[externalRole{namespace: namespace, role: b.role.String()}] = struct{}{}
	}
	return g
}

// beyond is what is given here and was not there.
func (g given) beyond(who string, before given) []Gain {
	had := coverageOf(before.rules)
	var more []right
	for _, rule := range g.rules {
		more = append(more, had.uncovered(rule)...)
	}
	var gains []Gain
	for _, rule := range merged(minimal(more)) {
		gains = append(gains, Gain{Subject: who, Rule: rule})
	}
	for role := range g.roles {
		_, hadHere := before.roles[role]
		_, hadEverywhere := before.roles[externalRole{role: role.role}]
		if !hadHere && !hadEverywhere {
			gains = append(gains, Gain{Subject: who, Rule: Rule{Namespace: role.namespace}, Role: role.role})
		}
	}
	return gains
}
