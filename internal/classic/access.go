package classic

import (
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// managed are the kinds by which an operator could tell classic OLM what to do. Everybody has
// rights to OperatorConditions.
var managed = []string{"subscriptions", "installplans", "clusterserviceversions", "catalogsources"}

// checkRightsToClassic is M9: the operator may itself use classic OLM, and that will not reach it any more.
func checkRightsToClassic(e *Examination) []Finding {
	op := e.Operator
	if op.CSV == nil {
		return nil
	}
	explicit, isWildcard := map[string]struct{}{}, false
	for _, rule := range e.Cluster.rulesOf(op.accounts()) {
		isAny := slices.Contains(rule.APIGroups, rbacv1.APIGroupAll)
		if !isAny && !slices.Contains(rule.APIGroups, object.ClassicGroup) {
			continue
		}
		isAny = isAny || slices.Contains(rule.Resources, rbacv1.ResourceAll)
		isWildcard = isWildcard || isAny && slices.Contains(rule.Resources, rbacv1.ResourceAll)
		for _, resource := range rule.Resources {
			if slices.Contains(managed, resource) {
				explicit[resource] = struct{}{}
			}
		}
	}
	switch {
	case len(explicit) > 0:
		return one(finding("M9", Attention, op.csvKey(), "the operator has rights to %s of classic OLM: if it installs others by these, it goes on to do so, and finds none of itself",
			excerpt.Of(slices.Sorted(maps.Keys(explicit)), maxNames)))
	case isWildcard:
		return one(finding("M9", Note, op.csvKey(), "the operator may do everything, also with classic OLM: if it installs others by Subscriptions, it goes on to do so"))
	}
	return nil
}

// accounts are the ServiceAccounts by which the operator runs, sorted.
func (o *Operator) accounts() []types.NamespacedName {
	found := map[string]struct{}{}
	strategy := &o.CSV.Spec.InstallStrategy.StrategySpec
	for i := range strategy.DeploymentSpecs {
		found[strategy.DeploymentSpecs[i].Spec.Template.Spec.ServiceAccountName] = struct{}{}
	}
	for _, permission := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
		found[permission.ServiceAccountName] = struct{}{}
	}
	delete(found, "")
	var accounts []types.NamespacedName
	for _, name := range slices.Sorted(maps.Keys(found)) {
		accounts = append(accounts, types.NamespacedName{Namespace: o.CSV.Namespace, Name: name})
	}
	return accounts
}

// rulesOf are all rules that bindings give to any of the accounts by name.
func (c *Cluster) rulesOf(accounts []types.NamespacedName) []rbacv1.PolicyRule {
	var found []rbacv1.PolicyRule
	isBound := func(namespace string, subjects []rbacv1.Subject) bool {
		return slices.ContainsFunc(subjects, func(one rbacv1.Subject) bool {
			name := types.NamespacedName{Namespace: one.Namespace, Name: one.Name}
			if name.Namespace == "" {
				name.Namespace = namespace
			}
			return one.Kind == rbacv1.ServiceAccountKind && slices.Contains(accounts, name)
		})
	}
	for i := range c.RoleBindings {
		if binding := &c.RoleBindings[i]; isBound(binding.Namespace, binding.Subjects) {
			found = append(found, c.rulesIn(binding.Namespace, binding.RoleRef)...)
		}
	}
	for i := range c.ClusterRoleBindings {
		if binding := &c.ClusterRoleBindings[i]; isBound("", binding.Subjects) {
			found = append(found, c.rulesIn("", binding.RoleRef)...)
		}
	}
	return found
}

func (c *Cluster) rulesIn(namespace string, ref rbacv1.RoleRef) []rbacv1.PolicyRule {
	for i := range c.ClusterRoles {
		if ref.Kind == kindClusterRole && c.ClusterRoles[i].Name == ref.Name {
			return c.ClusterRoles[i].Rules
		}
	}
	for i := range c.Roles {
		if role := &c.Roles[i]; ref.Kind == kindRole && role.Namespace == namespace && role.Name == ref.Name {
			return role.Rules
		}
	}
	return nil
}
