package inspect

import (
	"context"
	"errors"
	"fmt"
	"slices"

	appsv1 "k8s.io/api/apps/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

// deploymentKind is that of the operators that DeleteFirst deletes.
var deploymentKind = schema.GroupKind{Group: appsv1.GroupName, Kind: "Deployment"}

// lettingGo is what a policy that acts as the ServiceAccount has to do with.
type lettingGo struct {
	policy controller.UninstallPolicy

	// items are what the records have, and objects those of them that are there, or may be.
	items   []object.Item
	objects []preview.InstalledObject

	definitions []usage.Definition
	uses        []installation.Use // of the definitions, in the same order
}

// lackedRights are those rights that a policy takes and the ServiceAccount does not have, a line
// each. The ServiceAccount need not be there: the API server looks at bindings alone.
func (c *Cluster) lackedRights(ctx context.Context, look *uninstalling, going lettingGo) (obstacles []string) {
	rules := going.rights()
	if len(rules) == 0 {
		return nil
	}
	subject := permission.Subject{Extension: look.owner.Name, Namespace: look.owner.Namespace, ServiceAccount: look.owner.ServiceAccount}
	err := c.checkNeeds(ctx, subject, permission.Needs{Access: rules})
	account := fmt.Sprintf("ServiceAccount %q in namespace %q", subject.ServiceAccount, subject.Namespace)
	missing, isMissing := errors.AsType[*permission.MissingError](err)
	switch {
	case err == nil:
	case isMissing:
		for _, rule := range missing.Rules {
			obstacles = append(obstacles, fmt.Sprintf("%s lacks a right that policy %s takes: %s", account, going.policy, rule.Text()))
		}
	case apierrors.IsForbidden(err):
		look.unknown = append(look.unknown, fmt.Sprintf("whether %s has the rights that this takes, as you may not act as it: %v", account, err))
	default:
		look.unknown = append(look.unknown, fmt.Sprintf("whether %s has the rights that this takes: %v", account, err))
	}
	return obstacles
}

// rights are what the controller does as the ServiceAccount. To count custom resources is not
// among it, as the controller may do that as itself.
func (g lettingGo) rights() []permission.Rule {
	switch g.policy {
	case controller.UninstallKeep:
		return g.definitionRights()
	case controller.UninstallDeleteFirst:
		return slices.Concat(g.customResourceRights(), g.workloadRights())
	case controller.UninstallOrphan:
		return g.contentRights()
	case controller.UninstallDelete, controller.UninstallRefuseWhileInUse:
	}
	return nil
}

func (g lettingGo) definitionRights() (rules []permission.Rule) {
	for _, one := range g.definitions {
		rules = append(rules, rightTo(usage.DefinitionResource.GroupResource(), object.Key{Name: one.Name}, "get", "patch"))
	}
	return rules
}

// customResourceRights leave out definitions without custom resources: nothing is asked of
// these. Of those that could not be counted there may be some.
func (g lettingGo) customResourceRights() (rules []permission.Rule) {
	for i, one := range g.definitions {
		if one.Shared || one.Err != nil || g.uses[i].Err == nil && g.uses[i].Count == 0 {
			continue
		}
		rules = append(rules, rightTo(one.Resource.GroupResource(), object.Key{}, "list", "delete"))
	}
	return rules
}

func (g lettingGo) workloadRights() (rules []permission.Rule) {
	for _, item := range g.items {
		if item.Key.GroupKind == deploymentKind {
			rules = append(rules, g.rightsToItem(item, "delete"))
		}
	}
	return rules
}

func (g lettingGo) contentRights() (rules []permission.Rule) {
	for _, item := range g.items {
		rules = append(rules, g.rightsToItem(item, "patch"))
	}
	return rules
}

// rightsToItem are to read an object, and what is done to it if it is there and the
// extension's.
func (g lettingGo) rightsToItem(item object.Item, verb string) permission.Rule {
	verbs := []string{"get"}
	if slices.ContainsFunc(g.objects, func(found preview.InstalledObject) bool { return found.Key == item.Key && !found.Foreign }) {
		verbs = append(verbs, verb)
	}
	return rightTo(item.Mapping.Resource.GroupResource(), item.Key, verbs...)
}

// rightTo is to one object, or to all of a resource if the key has no name.
func rightTo(resource schema.GroupResource, key object.Key, verbs ...string) permission.Rule {
	rule := permission.Rule{Namespace: key.Namespace, PolicyRule: rbacv1.PolicyRule{
		APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: verbs,
	}}
	if key.Name != "" {
		rule.ResourceNames = []string{key.Name}
	}
	if resource == (schema.GroupResource{Resource: "namespaces"}) {
		rule.Namespace = key.Name // requests to a namespace are asked about inside of it
	}
	return rule
}
