package packagecard

import (
	"fmt"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
)

// Rights are the rights of an operator in short.
type Rights struct {
	// Everywhere and InNamespaces count the rules that hold in the whole cluster, and those
	// that hold in some namespaces.
	Everywhere   int `json:"everywhere"`
	InNamespaces int `json:"inNamespaces"`
	// Sweeping are those that whoever installs it should know of, a line each.
	Sweeping []string `json:"sweeping,omitempty"`
}

// RightsOf are what the roles allow that the objects of a bundle bind.
func RightsOf(objects []*unstructured.Unstructured) (Rights, error) {
	rules, err := rulesOf(objects)
	if err != nil {
		return Rights{}, err
	}
	var rights Rights
	var everywhere []rbacv1.PolicyRule
	counted := map[string]bool{} // a role may be bound twice
	for _, one := range objects {
		kind := one.GetKind()
		if kind != "ClusterRoleBinding" && kind != "RoleBinding" {
			continue
		}
		var binding rbacv1.RoleBinding
		if err := runtime.DefaultUnstructuredConverter.FromUnstructured(one.Object, &binding); err != nil {
			return Rights{}, err
		}
		role := roleKey(binding.RoleRef.Kind, one.GetNamespace(), binding.RoleRef.Name)
		if counted[kind+role] {
			continue
		}
		counted[kind+role] = true
		if _, own := rules[role]; !own {
			rights.Sweeping = append(rights.Sweeping, fmt.Sprintf("it is bound to %s %q, which is none of its own", binding.RoleRef.Kind, binding.RoleRef.Name))
		}
		if kind == "ClusterRoleBinding" {
			rights.Everywhere += len(rules[role])
			everywhere = append(everywhere, rules[role]...)
		} else {
			rights.InNamespaces += len(rules[role])
		}
	}
	for _, one := range sweeping {
		if slices.ContainsFunc(everywhere, one.isIn) {
			rights.Sweeping = append(rights.Sweeping, one.text)
		}
	}
	return rights, nil
}

// rulesOf are the rules of the roles among objects, by [roleKey].
func rulesOf(objects []*unstructured.Unstructured) (map[string][]rbacv1.PolicyRule, error) {
	rules := map[string][]rbacv1.PolicyRule{}
	for _, one := range objects {
		if kind := one.GetKind(); kind == "ClusterRole" || kind == "Role" {
			var role rbacv1.ClusterRole // a Role has the same rules
			if err := runtime.DefaultUnstructuredConverter.FromUnstructured(one.Object, &role); err != nil {
				return nil, err
			}
			rules[roleKey(kind, one.GetNamespace(), one.GetName())] = role.Rules
		}
	}
	return rules, nil
}

// roleKey tells roles apart. Those of the cluster have no namespace, wherever they are bound.
func roleKey(kind, namespace, name string) string {
	if kind == "ClusterRole" {
		namespace = ""
	}
	return kind + "/" + namespace + "/" + name
}

// right is a right to any of some verbs on a resource of all namespaces.
type right struct {
	text            string
	group, resource string
	verbs           []string
}

// sweeping are the rights by which one comes to all others, or to what others keep secret, the
// worst first.
var sweeping = []right{
	{"it may do everything, everywhere", rbacv1.APIGroupAll, rbacv1.ResourceAll, []string{rbacv1.VerbAll}},
	{"it may grant rights that it does not have", rbacv1.GroupName, "clusterroles", []string{"escalate", "bind"}},
	{"it may act as somebody else", "", "users", []string{"impersonate"}},
	{"it may act as any ServiceAccount", "", "serviceaccounts", []string{"impersonate"}},
	{"it may get tokens of any ServiceAccount", "", "serviceaccounts/token", []string{"create"}},
	{"it may read the Secrets of all namespaces", "", "secrets", []string{"get", "list", "watch"}},
	{"it may run commands in the pods of all namespaces", "", "pods/exec", []string{"create", "get"}},
	{"it may change what admission does", "admissionregistration.k8s.io", "mutatingwebhookconfigurations", []string{"create", "update", "patch"}},
}

// isIn reports whether a rule gives the right to every object.
func (r right) isIn(rule rbacv1.PolicyRule) bool {
	if len(rule.ResourceNames) > 0 {
		return false
	}
	has := func(values []string, all string, wanted ...string) bool {
		return slices.Contains(values, all) || slices.ContainsFunc(wanted, func(one string) bool { return slices.Contains(values, one) })
	}
	return has(rule.APIGroups, rbacv1.APIGroupAll, r.group) &&
		has(rule.Resources, rbacv1.ResourceAll, r.resource) &&
		has(rule.Verbs, rbacv1.VerbAll, r.verbs...)
}
