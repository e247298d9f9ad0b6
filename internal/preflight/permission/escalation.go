package permission

import (
	"fmt"

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
}

// escalationsOf finds all writes of roles and bindings, in the order of the items.
func escalationsOf(items []item) ([]Escalation, error) {
	roles, err := rolesOf(items)
	if err != nil {
		return nil, err
	}
	var escalations []Escalation
	for _, item := range items {
		switch {
		case item.isRole():
			escalations = append(escalations, roles[item.roleKey()].escalation())
		case item.isBinding():
			found, err := bindingOf(item)
			if err != nil {
				return nil, err
			}
			escalations = append(escalations, found.escalation(roles))
		}
	}
	return escalations, nil
}

func rolesOf(items []item) (map[roleKey]role, error) {
	roles := map[roleKey]role{}
	for _, item := range items {
		if !item.isRole() {
			continue
		}
		found, err := roleOf(item)
		if err != nil {
			return nil, err
		}
		roles[found.key] = found
	}
	return roles, nil
}

func (i item) isRole() bool    { return i.is(kindRole) || i.is(kindClusterRole) }
func (i item) isBinding() bool { return i.is(kindRoleBinding) || i.is(kindClusterRoleBinding) }

func (i item) is(kind string) bool {
	return i.object.GroupVersionKind().GroupKind() == schema.GroupKind{Group: groupRBAC, Kind: kind}
}

// roleOf reads a Role or a ClusterRole, which have the same fields but for one.
func roleOf(item item) (role, error) {
	var read rbacv1.ClusterRole
	if err := item.into(&read); err != nil {
		return role{}, err
	}
	aggregation := read.AggregationRule
	return role{
		key:        item.roleKey(),
		rules:      read.Rules,
		aggregated: item.is(kindClusterRole) && aggregation != nil && len(aggregation.ClusterRoleSelectors) > 0,
	}, nil
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
func bindingOf(item item) (boundSubjects, error) {
	var read rbacv1.RoleBinding
	if err := item.into(&read); err != nil {
		return boundSubjects{}, err
	}
	key := roleKey{name: read.RoleRef.Name}
	if read.RoleRef.Kind == kindRole {
		key.namespace = item.namespace
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
