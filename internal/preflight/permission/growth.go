package permission

import (
	"cmp"
	"errors"
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/hook"
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

// Growth are the rights that the wanted objects and hooks give and those before did not:
// the union of the rules of all roles that a subject is bound to, so that it does
// not matter what roles are called. What only hooks gave before counts for hooks alone, since
// they may have gone: see [Content.stages]. Sorted. It fails when a role or a binding cannot be
// read, and when the wanted ones grant more than is compared.
func Growth(mapper Mapper, subject Subject, content Content) ([]Gain, error) {
	mapper = withDefinitions(mapper, slices.Concat(content.Wanted, content.Before))
	more := map[string]excess{}
	for _, stage := range content.stages() {
		after, err := givenTo(mapper, subject, stage.wanted)
		if err != nil {
			return nil, err
		}
		before, err := givenTo(mapper, subject, stage.before)
		if _, ok := errors.AsType[*grantsError](err); err != nil && !ok {
			return nil, err
		}
		// What was installed when there was no bound counts as nothing: all of it is told.
		for who, has := range after {
			more[who] = more[who].with(has, before[who])
		}
	}
	var gains []Gain
	for who, one := range more {
		gains = append(gains, one.gains(who)...)
	}
	slices.SortFunc(gains, func(a, b Gain) int { return cmp.Compare(a.String(), b.String()) })
	return gains, nil
}

// stage is what gives rights for so long at least, of the wanted revision and of the installed one.
type stage struct {
	wanted, before []*unstructured.Unstructured
}

// stages begin with what gives rights for good. Hooks of installations and upgrades come next, which
// may be there for a moment, and then those that are there when all is deleted. To give for longer
// what was given is more.
func (c Content) stages() []stage {
	before := c.OwnBefore()
	stages := []stage{{c.Wanted, before}}
	if len(c.Hooks) == 0 {
		return stages
	}
	soon := stage{
		slices.Concat(c.Wanted, hook.Objects(withoutDeletion(c.Hooks))),
		slices.Concat(before, hook.Objects(withoutDeletion(c.HooksBefore))),
	}
	whole := stage{
		slices.Concat(c.Wanted, hook.Objects(c.Hooks)),
		slices.Concat(before, hook.Objects(c.HooksBefore)),
	}
	return append(stages, soon, whole)
}

// OwnBefore returns the objects of Before without Inherited.
func (c Content) OwnBefore() []*unstructured.Unstructured {
	return slices.DeleteFunc(slices.Clone(c.Before), func(obj *unstructured.Unstructured) bool { return slices.Contains(c.Inherited, obj) })
}

func withoutDeletion(hooks []hook.Hook) []hook.Hook {
	return slices.DeleteFunc(slices.Clone(hooks), hook.Hook.IsForDeletion)
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

// excess is what a subject is given beyond what it had.
type excess struct {
	rights []right
	roles  map[externalRole]struct{}
}

// with adds what is given and was not before.
func (e excess) with(has, before given) excess {
	had := coverageOf(before.rules)
	for _, rule := range has.rules {
		e.rights = append(e.rights, had.uncovered(rule)...)
	}
	for role := range has.roles {
		_, hadHere := before.roles[role]
		_, hadEverywhere := before.roles[externalRole{role: role.role}]
		if hadHere || hadEverywhere {
			continue
		}
		if e.roles == nil {
			e.roles = map[externalRole]struct{}{}
		}
		e.roles[role] = struct{}{}
	}
	return e
}

func (e excess) gains(who string) []Gain {
	var gains []Gain
	for _, rule := range merged(minimal(e.rights)) {
		gains = append(gains, Gain{Subject: who, Rule: rule})
	}
	for role := range e.roles {
		gains = append(gains, Gain{Subject: who, Rule: Rule{Namespace: role.namespace}, Role: role.role})
	}
	return gains
}
