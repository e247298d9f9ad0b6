package bundle

import (
	"fmt"
	"slices"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

func (r *renderer) permissions() []operatorsv1alpha1.StrategyDeploymentPermissions {
	return r.bundle.CSV.Spec.InstallStrategy.StrategySpec.Permissions
}

func (r *renderer) clusterPermissions() []operatorsv1alpha1.StrategyDeploymentPermissions {
	return r.bundle.CSV.Spec.InstallStrategy.StrategySpec.ClusterPermissions
}

// operatorAccounts are the ServiceAccounts that permissions are for, each once; that which
// every namespace has if there are none.
func (r *renderer) operatorAccounts() []string {
	var names []string
	for _, permission := range slices.Concat(r.permissions(), r.clusterPermissions()) {
		names = append(names, serviceAccountName(permission))
	}
	if len(names) == 0 {
		return []string{defaultServiceAccount}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// serviceAccounts makes those that permissions name. Every namespace has a
// "default" of its own.
func (r *renderer) serviceAccounts() error {
	for _, name := range r.operatorAccounts() {
		if name == defaultServiceAccount {
			continue
		}
		if err := r.add(&corev1.ServiceAccount{
			TypeMeta:   metav1.TypeMeta{APIVersion: "v1", Kind: kindServiceAccount},
			ObjectMeta: metav1.ObjectMeta{Name: name, Namespace: r.namespace},
		}); err != nil {
			return err
		}
	}
	return nil
}

// roles grants the permissions in each watched namespace, unless that is all of
// them: see clusterRoles.
func (r *renderer) roles() error {
	if r.watchesAll() {
		return nil
	}
	if err := r.checkRoleCopies(); err != nil {
		return err
	}
	for _, namespace := range r.watched {
		for _, permission := range r.permissions() {
			if err := r.role(namespace, permission); err != nil {
				return err
			}
		}
	}
	return nil
}

// roleBytes is what a Role and its binding take at least, whatever they grant.
const roleBytes = 1 << 10

// checkRoleCopies bounds what is granted in all: each of several namespaces has a copy. It
// fails with a [*ConfigError].
func (r *renderer) checkRoleCopies() error {
	size := len(encoded(r.permissions())) + roleBytes*len(r.permissions())
	if len(r.watched) == 1 || size*len(r.watched) <= MaxRoleCopiesBytes {
		return nil
	}
	return newConfigError(fmt.Sprintf("field %q has %d namespaces: each gets the %d roles of the bundle, of %d bytes, and all copies may have %d; name fewer",
		KeyWatchNamespaces, len(r.watched), len(r.permissions()), size, MaxRoleCopiesBytes))
}

func (r *renderer) role(namespace string, permission operatorsv1alpha1.StrategyDeploymentPermissions) error {
	name, err := rbacName(r.bundle.CSV.Name, permission)
	if err != nil {
		return err
	}
	metadata := metav1.ObjectMeta{Name: name, Namespace: namespace}
	if err := r.add(&rbacv1.Role{
		TypeMeta:   rbacType(kindRole),
		ObjectMeta: metadata,
		Rules:      permission.Rules,
	}); err != nil {
		return err
	}
	return r.add(&rbacv1.RoleBinding{
		TypeMeta:   rbacType(kindRoleBinding),
		ObjectMeta: metadata,
		Subjects:   r.subjects(permission),
		RoleRef:    rbacv1.RoleRef{APIGroup: groupRBAC, Kind: kindRole, Name: name},
	})
}

// clusterRoles grants the cluster permissions, and the permissions too when
// all namespaces are watched. The operator may then look at the namespaces.
func (r *renderer) clusterRoles() error {
	permissions := slices.Clone(r.clusterPermissions())
	if r.watchesAll() {
		for _, permission := range r.permissions() {
			permission.Rules = append(slices.Clone(permission.Rules), rbacv1.PolicyRule{
				APIGroups: []string{corev1.GroupName},
				Resources: []string{"namespaces"},
				Verbs:     []string{"get", "list", "watch"},
			})
			permissions = append(permissions, permission)
		}
	}
	for _, permission := range permissions {
		if err := r.clusterRole(permission); err != nil {
			return err
		}
	}
	return nil
}

func (r *renderer) clusterRole(permission operatorsv1alpha1.StrategyDeploymentPermissions) error {
	name, err := rbacName(r.bundle.CSV.Name, permission)
	if err != nil {
		return err
	}
	metadata := metav1.ObjectMeta{Name: name}
	if err := r.add(&rbacv1.ClusterRole{
		TypeMeta:   rbacType(kindClusterRole),
		ObjectMeta: metadata,
		Rules:      permission.Rules,
	}); err != nil {
		return err
	}
	return r.add(&rbacv1.ClusterRoleBinding{
		TypeMeta:   rbacType(kindClusterRoleBinding),
		ObjectMeta: metadata,
		Subjects:   r.subjects(permission),
		RoleRef:    rbacv1.RoleRef{APIGroup: groupRBAC, Kind: kindClusterRole, Name: name},
	})
}

func (r *renderer) subjects(permission operatorsv1alpha1.StrategyDeploymentPermissions) []rbacv1.Subject {
	return []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Name: serviceAccountName(permission), Namespace: r.namespace}}
}

func rbacType(kind string) metav1.TypeMeta {
	return metav1.TypeMeta{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: kind}
}
