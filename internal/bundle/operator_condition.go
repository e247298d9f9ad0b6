package bundle

import (
	"slices"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

// conditionNameVariable is where operators written for classic OLM look for the name of
// their OperatorCondition. Some do not start without it, and some take it for their version.
const conditionNameVariable = "OPERATOR_CONDITION_NAME"

// nameCondition tells the containers of a pod the name of the bundle. One that has the
// variable keeps it. Init containers have none, as in classic OLM.
func nameCondition(pod *corev1.PodSpec, bundle string) {
	if bundle == "" {
		return
	}
	for i := range pod.Containers {
		container := &pod.Containers[i]
		if !slices.ContainsFunc(container.Env, func(v corev1.EnvVar) bool { return v.Name == conditionNameVariable }) {
			container.Env = append(container.Env, corev1.EnvVar{Name: conditionNameVariable, Value: bundle})
		}
	}
}

// conditionNames bounds what is added in all: each container has a copy of the name.
func (v *validator) conditionNames() {
	name, containers := v.bundle.CSV.Name, 0
	for i := range v.bundle.deployments() {
		containers += len(v.bundle.deployments()[i].Spec.Template.Spec.Containers)
	}
	if len(name)*containers > MaxNameCopiesBytes {
		v.csv("metadata.name", "the name has %d bytes, and each of %d containers gets a copy as %s; all copies may have %d bytes",
			len(name), containers, conditionNameVariable, MaxNameCopiesBytes)
	}
}

// HasOperator says that the bundle runs something.
func (b *Bundle) HasOperator() bool { return len(b.deployments()) > 0 }

// OperatorCondition is the name of the one that a configuration makes; empty for none.
func (b *Bundle) OperatorCondition(config Config) string {
	if !config.OperatorConditions || !b.CanHaveOperatorCondition() {
		return ""
	}
	return b.CSV.Name
}

// CanHaveOperatorCondition says that there can be an object of the name of the bundle, and
// somebody to write it.
func (b *Bundle) CanHaveOperatorCondition() bool {
	return b.HasOperator() && len(validation.IsDNS1123Subdomain(b.CSV.Name)) == 0
}

// operatorCondition makes the object in which the operator says whether it is to be upgraded,
// and lets the operator write it. It has nothing but what classic OLM takes from a
// ClusterServiceVersion: conditions are the operator's, and overrides the administrator's.
func (r *renderer) operatorCondition() error {
	if r.condition == "" {
		return nil
	}
	name := r.condition
	var deployments []any
	for _, declared := range r.bundle.deployments() {
		deployments = append(deployments, declared.Name)
	}
	var accounts []any
	var subjects []rbacv1.Subject
	for _, name := range r.operatorAccounts() {
		accounts = append(accounts, name)
		subjects = append(subjects, rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Name: name, Namespace: r.namespace})
	}
	if err := r.add(map[string]any{
		"apiVersion": groupOperators + "/v2",
		"kind":       "OperatorCondition",
		"metadata":   map[string]any{"name": name, "namespace": r.namespace},
		"spec":       map[string]any{"serviceAccounts": accounts, "deployments": deployments},
	}); err != nil {
		return err
	}
	// Classic OLM makes a Role for any OperatorCondition, under its name. This is another one,
	// so that nobody takes it over.
	access := metav1.ObjectMeta{Name: shortened(name+"-operatorcondition", maxNameLength), Namespace: r.namespace}
	if err := r.add(&rbacv1.Role{
		TypeMeta:   rbacType(kindRole),
		ObjectMeta: access,
		Rules: []rbacv1.PolicyRule{{
			APIGroups:     []string{groupOperators},
			Resources:     []string{"operatorconditions"},
			ResourceNames: []string{name},
			Verbs:         []string{"get", "update", "patch"},
		}},
	}); err != nil {
		return err
	}
	return r.add(&rbacv1.RoleBinding{
		TypeMeta:   rbacType(kindRoleBinding),
		ObjectMeta: access,
		Subjects:   subjects,
		RoleRef:    rbacv1.RoleRef{APIGroup: groupRBAC, Kind: kindRole, Name: access.Name},
	})
}
