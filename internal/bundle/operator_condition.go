package bundle

import (
	"slices"
	"strings"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/util/validation"
)

const (
	// conditionNameVariable contains the name of the OperatorCondition. Some operators do not
	// start without it. Others fail if it names an object that does not exist.
	conditionNameVariable = "OPERATOR_CONDITION_NAME"

	resourceConditions = "operatorconditions"
)

// OperatorConditionAdvice recommends the setting to users of a bundle that uses an OperatorCondition.
const OperatorConditionAdvice = "The operator can use an OperatorCondition, and some operators require one: set operatorConditions: true in spec.config.inline to add it, with the variable " + conditionNameVariable

// nameCondition sets the variable in the containers of a pod to the name of an
// OperatorCondition; an empty name sets none. A container that has the variable keeps its
// value. Init containers do not get the variable, as in OLM v0.
func nameCondition(pod *corev1.PodSpec, condition string) {
	if condition == "" {
		return
	}
	for i := range pod.Containers {
		if env := &pod.Containers[i].Env; !namesCondition(*env) {
			*env = append(*env, corev1.EnvVar{Name: conditionNameVariable, Value: condition})
		}
	}
}

func namesCondition(env []corev1.EnvVar) bool {
	return slices.ContainsFunc(env, func(v corev1.EnvVar) bool { return v.Name == conditionNameVariable })
}

// LacksOperatorCondition reports whether the operator uses an OperatorCondition that config
// neither adds nor replaces by a variable: its permissions name operatorconditions, or its
// containers refer to the variable without setting it.
func (b *Bundle) LacksOperatorCondition(config Config) bool {
	isNamed := config.Deployment != nil && namesCondition(config.Deployment.Env)
	return b.CanHaveOperatorCondition() && !config.OperatorConditions && !isNamed && (b.permitsConditions() || b.refersToConditionName())
}

// permitsConditions ignores rules for all resources, which most operators do not use for this.
func (b *Bundle) permitsConditions() bool {
	strategy := &b.CSV.Spec.InstallStrategy.StrategySpec
	var rules []rbacv1.PolicyRule
	for _, permission := range slices.Concat(strategy.Permissions, strategy.ClusterPermissions) {
		rules = append(rules, permission.Rules...)
	}
	for i := range b.Others {
		if kind := b.Others[i].GetKind(); kind != kindRole && kind != kindClusterRole {
			continue
		}
		var role rbacv1.Role
		if decodeTyped(b.Others[i].Object, &role) == nil {
			rules = append(rules, role.Rules...)
		}
	}
	return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool {
		isGroup := slices.Contains(rule.APIGroups, groupOperators) || slices.Contains(rule.APIGroups, rbacv1.APIGroupAll)
		return isGroup && slices.ContainsFunc(rule.Resources, func(resource string) bool {
			return resource == resourceConditions || strings.HasPrefix(resource, resourceConditions+"/")
		})
	})
}

func (b *Bundle) refersToConditionName() bool {
	const reference = "$(" + conditionNameVariable + ")"
	refers := func(text string) bool { return strings.Contains(text, reference) }
	for _, declared := range b.deployments() {
		containers := declared.Spec.Template.Spec.Containers
		for i := range containers {
			inEnv := slices.ContainsFunc(containers[i].Env, func(v corev1.EnvVar) bool { return refers(v.Value) })
			isReferring := inEnv || slices.ContainsFunc(containers[i].Args, refers) || slices.ContainsFunc(containers[i].Command, refers)
			if isReferring && !namesCondition(containers[i].Env) {
				return true
			}
		}
	}
	return false
}

// conditionNames limits the size of all copies of the name: each container can get one.
func (v *validator) conditionNames() {
	if !v.bundle.CanHaveOperatorCondition() {
		return
	}
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
			Resources:     []string{resourceConditions},
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
