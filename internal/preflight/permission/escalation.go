package permission

import (
	"fmt"
	"strings"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	groupRBAC = rbacv1.GroupName

	kindRole               = "Role"
	kindClusterRole        = "ClusterRole"
	kindRoleBinding        = "RoleBinding"
	kindClusterRoleBinding = "ClusterRoleBinding"

	resourceRoles        = "roles"
	resourceClusterRoles = "clusterroles"

	verbEscalate = "escalate"
	verbBind     = "bind"
)

// Escalation is the write of a role or a binding. The API server allows it to
// who has Permit, and to who holds all that it grants.
type Escalation struct {
	// Namespace is where the rights have to hold; empty for everywhere.
	Namespace string

	// Permit is escalate on roles, or bind on the role of a binding. Only bind
	// can be limited to a name: escalate is asked about under the name in the
	// request, and a request to create has none.
	Permit rbacv1.PolicyRule

	// Grants are the rules that do as well, if all of them are held.
	Grants []rbacv1.PolicyRule

	// Preferred says how the write is to be allowed where it is not.
	Preferred Way

	// external is set for bindings to roles that are not among the objects, or
	// whose rules come from others. Grants are not known before they are read.
	external *binding
}

// Way is a way in which an escalation is allowed.
type Way string

// The ways of the API server. Rules are preferred for what the objects grant:
// who permits is to see what. A permit is preferred where the rules are those of
// others, or are everything.
const (
	ByRules  Way = "rules"
	ByPermit Way = "permit"
)

// everything is what aggregation can bring into a role.
var everything = []rbacv1.PolicyRule{
	{APIGroups: []string{rbacv1.APIGroupAll}, Resources: []string{rbacv1.ResourceAll}, Verbs: []string{rbacv1.VerbAll}},
	{NonResourceURLs: []string{rbacv1.NonResourceAll}, Verbs: []string{rbacv1.VerbAll}},
}

// binding is a binding as rules are concerned with it.
type binding struct {
	item item
	role roleKey
}

// roleKey names a role. Those of the whole cluster have no namespace.
type roleKey struct {
	namespace, name string
}

func (i item) roleKey() roleKey { return roleKey{namespace: i.namespace, name: i.name} }

func (k roleKey) resource() string {
	if k.namespace == "" {
		return resourceClusterRoles
	}
	return resourceRoles
}

func (k roleKey) String() string {
	if k.namespace == "" {
		return fmt.Sprintf("%s %q", kindClusterRole, k.name)
	}
	return fmt.Sprintf("%s %q", kindRole, k.name)
}

// role is a Role or a ClusterRole.
type role struct {
	key        roleKey
	rules      []rbacv1.PolicyRule
	aggregated bool

	// rights is how many rights the rules are made of, up to [maxGranted].
	rights int
}

// maxGranted is how many rights the roles and bindings of a bundle may grant, a
// binding to each of its subjects. Those of the largest known bundle grant 2,500.
const maxGranted = 50_000

// fewer is what to do about too many.
const fewer = "; write fewer groups, resources, verbs and names, or a wildcard"

// allowance is how many rights are left.
type allowance int

func (a *allowance) spend(item item, rights int, format string, args ...any) error {
	if *a -= allowance(rights); *a >= 0 {
		return nil
	}
	return &grantsError{fmt.Sprintf("%s %q is beyond the %d rights that the roles and bindings of a bundle may grant: "+format+fewer,
		append([]any{item.object.GetKind(), item.name, maxGranted}, args...)...)}
}

// grantsError says that roles and bindings grant too many rights.
type grantsError struct{ text string }

func (e *grantsError) Error() string { return e.text }

// escalationsOf finds all writes of roles and bindings, in the order of the items. It
// fails when they grant more than is compared.
func escalationsOf(items []item) ([]Escalation, error) {
	roles, left, err := rolesOf(items)
	if err != nil {
		return nil, err
	}
	var escalations []Escalation
	for _, item := range items {
		switch {
		case item.isRole():
			escalations = append(escalations, roles[item.roleKey()].escalation())
		case item.isBinding():
			found, err := bindingOf(item, roles, &left)
			if err != nil {
				return nil, err
			}
			escalations = append(escalations, found.escalation(roles))
		}
	}
	return escalations, nil
}

// rolesOf reads the roles among the items. It returns how many rights bindings may
// still give.
func rolesOf(items []item) (map[roleKey]role, allowance, error) {
	roles, left := map[roleKey]role{}, allowance(maxGranted)
	for _, item := range items {
		if !item.isRole() {
			continue
		}
		found, err := roleOf(item, &left)
		if err != nil {
			return nil, 0, err
		}
		roles[found.key] = found
	}
	return roles, left, nil
}

func (i item) isRole() bool    { return i.is(kindRole) || i.is(kindClusterRole) }
func (i item) isBinding() bool { return i.is(kindRoleBinding) || i.is(kindClusterRoleBinding) }

func (i item) is(kind string) bool {
	return i.object.GroupVersionKind().GroupKind() == schema.GroupKind{Group: groupRBAC, Kind: kind}
}

// roleOf reads a Role or a ClusterRole, which have the same fields but for one.
func roleOf(item item, left *allowance) (role, error) {
	var read rbacv1.ClusterRole
	if err := item.into(&read); err != nil {
		return role{}, err
	}
	rights := 0
	for i, rule := range read.Rules {
		size := max(1, sizeOf(rule, maxGranted)) // it takes a step even if it grants nothing
		if err := left.spend(item, size, "its rule %d has %s, which are multiplied", i+1, factorsOf(rule)); err != nil {
			return role{}, err
		}
		rights += size
	}
	aggregation := read.AggregationRule
	return role{
		key:        item.roleKey(),
		rules:      read.Rules,
		aggregated: item.is(kindClusterRole) && aggregation != nil && len(aggregation.ClusterRoleSelectors) > 0,
		rights:     rights,
	}, nil
}

// factorsOf says how long the lists of a rule are, as in 1 group, 2 resources and 3 verbs.
func factorsOf(rule rbacv1.PolicyRule) string {
	var factors []string
	for _, list := range []struct {
		what  string
		words []string
	}{
		{"group", rule.APIGroups},
		{"resource", rule.Resources},
		{"URL", rule.NonResourceURLs},
		{"verb", rule.Verbs},
		{"name", rule.ResourceNames},
	} {
		if n := len(list.words); n > 0 {
			factors = append(factors, counted(n, list.what))
		}
	}
	if last := len(factors) - 1; last > 0 {
		return strings.Join(factors[:last], ", ") + " and " + factors[last]
	}
	return strings.Join(factors, "")
}

func counted(n int, what string) string {
	if n == 1 {
		return "1 " + what
	}
	return fmt.Sprintf("%d %ss", n, what)
}

func (r role) escalation() Escalation {
	escalation := Escalation{
		Namespace: r.key.namespace,
		Permit: rbacv1.PolicyRule{
			APIGroups: []string{groupRBAC}, Resources: []string{r.key.resource()}, Verbs: []string{verbEscalate},
		},
		Grants:    r.rules,
		Preferred: ByRules,
	}
	if r.aggregated {
		escalation.Grants, escalation.Preferred = everything, ByPermit
	}
	return escalation
}

// boundSubjects is a binding and whom it gives the role to.
type boundSubjects struct {
	binding

	subjects []rbacv1.Subject
}

// bindingOf reads a RoleBinding or a ClusterRoleBinding, which have the same
// fields.
func bindingOf(item item, roles map[roleKey]role, left *allowance) (boundSubjects, error) {
	var read rbacv1.RoleBinding
	if err := item.into(&read); err != nil {
		return boundSubjects{}, err
	}
	key := roleKey{name: read.RoleRef.Name}
	if read.RoleRef.Kind == kindRole {
		key.namespace = item.namespace
	}
	subjects := max(1, len(read.Subjects))
	if err := left.spend(item, max(1, roles[key].rights)*subjects,
		"it gives the %d of %s to %s", roles[key].rights, key, counted(subjects, "subject")); err != nil {
		return boundSubjects{}, err
	}
	return boundSubjects{binding: binding{item: item, role: key}, subjects: read.Subjects}, nil
}

// escalation takes the rules of roles that are written before the binding, so
// that the binding is never held against what they were.
func (b binding) escalation(roles map[roleKey]role) Escalation {
	escalation := Escalation{
		Namespace: b.item.namespace,
		Permit: rbacv1.PolicyRule{
			APIGroups: []string{groupRBAC}, Resources: []string{b.role.resource()},
			ResourceNames: []string{b.role.name}, Verbs: []string{verbBind},
		},
		Preferred: ByRules,
	}
	known, found := roles[b.role]
	if found && !known.aggregated {
		escalation.Grants = known.rules
		return escalation
	}
	// Who holds everything needs to know no more about the role.
	escalation.Grants, escalation.Preferred, escalation.external = everything, ByPermit, &b
	return escalation
}

func (i item) into(typed any) error {
	if err := runtime.DefaultUnstructuredConverter.FromUnstructured(i.object.Object, typed); err != nil {
		return fmt.Errorf("reading %s %q: %w", i.object.GetKind(), i.name, err)
	}
	return nil
}

// least is what allows the write in the way that is preferred.
func (e Escalation) least() []Rule {
	if e.Preferred == ByPermit {
		return inNamespace(e.Namespace, []rbacv1.PolicyRule{e.Permit})
	}
	return inNamespace(e.Namespace, e.Grants)
}

// lacking are the rights that would allow the write, or nothing if it is allowed.
func (e Escalation) lacking(has authority) []right {
	if e.isPermitted(has) {
		return nil
	}
	var left []right
	for _, rule := range inNamespace(e.Namespace, e.Grants) {
		left = append(left, has.rules.uncovered(rule)...)
	}
	if len(left) > 0 && e.Preferred == ByPermit {
		return rightsOf(e.least())
	}
	return left
}

func (e Escalation) isPermitted(has authority) bool {
	return len(has.refused(Rule{Namespace: e.Namespace, PolicyRule: e.Permit})) == 0
}
