package classic

import (
	"testing"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	rbacv1 "k8s.io/api/rbac/v1"
)

// leaderElection are the rules of a permission that operators have in common, as a scaffold
// makes them.
func leaderElection() []rbacv1.PolicyRule {
	all := []string{"get", "list", "watch", "create", "update", "patch", "delete"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: all},
		{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: all},
		{APIGroups: []string{""}, Resources: []string{"events"}, Verbs: []string{"create", "patch"}},
	}
}

// secretRules are those of the cluster permission of the same operator.
func secretRules() []rbacv1.PolicyRule {
	const group = "ecr.mobb.redhat.com"
	all := []string{"create", "delete", "get", "list", "patch", "update", "watch"}
	return []rbacv1.PolicyRule{
		{APIGroups: []string{""}, Resources: []string{"secrets"}, Verbs: all},
		{APIGroups: []string{group}, Resources: []string{"argohelmreposecrets", "secrets"}, Verbs: all},
		{APIGroups: []string{group}, Resources: []string{"argohelmreposecrets/finalizers", "secrets/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{group}, Resources: []string{"argohelmreposecrets/status", "secrets/status"}, Verbs: []string{"get", "patch", "update"}},
		{APIGroups: []string{"authentication.k8s.io"}, Resources: []string{"tokenreviews"}, Verbs: []string{"create"}},
		{APIGroups: []string{"authorization.k8s.io"}, Resources: []string{"subjectaccessreviews"}, Verbs: []string{"create"}},
	}
}

// TestNamesOfClassicOLM has the names and hashes that version 0.46 has given on a cluster.
func TestNamesOfClassicOLM(t *testing.T) {
	t.Parallel()
	const csv, account, namespace = "ecr-secret-operator.v0.6.0", "ecr-secret-operator-controller-manager", "migration-e2e-ecr-secret"
	permission := operatorsv1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account, Rules: leaderElection()}
	role, err := RoleName(csv, permission)
	if err != nil {
		t.Fatal(err)
	}
	rules, err := RulesHash(permission.Rules)
	if err != nil {
		t.Fatal(err)
	}
	binding, err := BindingHash(rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role},
		[]rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: account, Namespace: namespace}})
	if err != nil {
		t.Fatal(err)
	}
	cluster, err := ClusterRoleName(csv, namespace, operatorsv1alpha1.StrategyDeploymentPermissions{ServiceAccountName: account, Rules: secretRules()})
	if err != nil {
		t.Fatal(err)
	}
	for what, pair := range map[string][2]string{
		"role":         {role, "ecr-secret-operator.v0.6-2ChlGSRBTSfiR4iqRj14veftqoSMZp7C4uXdua"},
		"rules":        {rules, "jFynzryran0Td5CUgJ3rwrkK6ZdYd35f5iILp"},
		"binding":      {binding, "2Zppev5vrCD8KRiaceC8DqAFy5z3NtytRaF62c"},
		"cluster role": {cluster, "ecr-secret-operator.v0.6-2N76pqlChHToKBZPhx3hdqqGw2zh18KT0QfL1L"},
	} {
		if pair[0] != pair[1] {
			t.Errorf("%s: got %s, want %s", what, pair[0], pair[1])
		}
	}
}
