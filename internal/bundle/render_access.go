package bundle

import (
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

// maxNameLength is what most kinds allow for a name.
const maxNameLength = 253

// access is what one of the ClusterRoles that Kubernetes aggregates may do with
// the resources of an API.
type access struct {
	suffix string

	// into is the ClusterRole that takes the rule in.
	into  string
	verbs []string
	rule  func(resource, group string) rbacv1.PolicyRule

	// ofDefinition says that the rule is about the definition of the API.
	ofDefinition bool
}

// accesses are those that classic OLM granted, so that who may administer, edit
// or view a namespace may do so with the resources of operators as well.
func accesses() []access {
	resources := func(resource, group string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}}
	}
	definition := func(resource, group string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{
			APIGroups:     []string{groupAPIExtensions},
			Resources:     []string{"customresourcedefinitions"},
			ResourceNames: []string{resource + "." + group},
		}
	}
	return []access{
		{suffix: "admin", into: "admin", verbs: []string{"*"}, rule: resources},
		{suffix: "edit", into: "edit", verbs: []string{"create", "update", "patch", "delete"}, rule: resources},
		{suffix: "view", into: "view", verbs: []string{"get", "list", "watch"}, rule: resources},
		{suffix: "crdview", into: "view", verbs: []string{"get"}, rule: definition, ofDefinition: true},
	}
}

// aggregatedClusterRoles lets the users of the cluster at the APIs that the
// bundle provides, under the names that classic OLM gave to these roles. There are none for
// reserved groups: whose resources those are is not for a bundle to say.
func (r *renderer) aggregatedClusterRoles() error {
	if !r.aggregate {
		return nil
	}
	for _, owned := range r.providedAPIs() {
		if isReserved(owned.group) {
			continue
		}
		for _, access := range accesses() {
			if access.ofDefinition && !owned.defined {
				continue
			}
			rule := access.rule(owned.resource, owned.group)
			rule.Verbs = access.verbs
			if err := r.add(&rbacv1.ClusterRole{
				TypeMeta: rbacType(kindClusterRole),
				ObjectMeta: metav1.ObjectMeta{
					Name:   shortened(owned.name+"-"+owned.version+"-"+access.suffix, maxNameLength),
					Labels: map[string]string{"rbac.authorization.k8s.io/aggregate-to-" + access.into: "true"},
				},
				Rules: []rbacv1.PolicyRule{rule},
			}); err != nil {
				return err
			}
		}
	}
	return nil
}
