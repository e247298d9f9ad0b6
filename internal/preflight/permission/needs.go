package permission

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"slices"

	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/hook"
)

// Verbs of requests to the API server.
const (
	verbGet    = "get"
	verbList   = "list"
	verbWatch  = "watch"
	verbCreate = "create"
	verbUpdate = "update"
	verbPatch  = "patch"
	verbDelete = "delete"
)

// Subject is who installs what.
type Subject struct {
	// Extension is the name of the ClusterExtension. It may be empty, and then
	// nothing is said about its finalizers.
	Extension string

	// Namespace is that of the ServiceAccount, and of objects that need one and
	// name none.
	Namespace string

	// ServiceAccount is the name of the ServiceAccount.
	ServiceAccount string
}

// Content is what is to be installed. No part is changed.
type Content struct {
	// Wanted are the objects of the revision, as rendered.
	Wanted []*unstructured.Unstructured

	// Meanwhile are the objects of a revision that is applied before the wanted one can be,
	// if there is one. Those that are not wanted are dropped then.
	Meanwhile []*unstructured.Unstructured

	// Before are the objects of the revision that is installed, if there is one.
	// Those that are not wanted any more are dropped.
	Before []*unstructured.Unstructured

	// Inherited are the objects of Before that another extension has installed. The permissions that they give were not
	// approved for this one.
	Inherited []*unstructured.Unstructured

	// Claimed are existing objects that get an owner reference: the objects of a Helm release that
	// became an extension.
	Claimed []*unstructured.Unstructured

	// Hooks run before or after operations. Tests are not among them.
	Hooks []hook.Hook

	// GivenUp are hooks of another revision that may run, and are deleted then.
	GivenUp []hook.Hook

	// HooksBefore are those of the revision that is installed.
	HooksBefore []hook.Hook

	// Replaceable are the kinds whose objects may be deleted and created again when
	// they stay and a field of them cannot be changed.
	Replaceable []schema.GroupKind
}

// Needs are the rights that it takes to manage a set of objects.
type Needs struct {
	// Access is sorted, one rule for each resource and name. Without all of it
	// requests are refused.
	Access []Rule

	// Escalations are the writes of roles and bindings. Each of them has to be
	// allowed, in one way or the other.
	Escalations []Escalation

	// Advice is sorted, and never missing. It is list and watch where the objects
	// are, and, for the admission plugin OwnerReferencesPermissionEnforcement, update of
	// the extension's finalizers and delete of claimed objects.
	Advice []Rule

	// Stored is to list the custom resources that a check of definitions looks at;
	// see [ToList]. It is granted, and never missing: the check itself says so.
	Stored []Rule

	// Hooks is sorted. It takes these to run hooks, and before those that run when all else
	// is gone to delete the content. Without all of it requests are refused.
	Hooks []Rule

	// Logs is sorted, and never missing: with it, the last line of a hook that has failed is told.
	Logs []Rule

	// created are the namespaces that the content brings.
	created map[string]struct{}
}

// NeedsOf gives the rights that the subject needs for the content. It fails when
// the mapper does not know a wanted kind, naming all of them, when a role or a
// binding cannot be read, or when they grant more than is compared. Dropped objects
// of unknown kinds are gone.
func NeedsOf(mapper Mapper, subject Subject, content Content) (Needs, error) {
	mapper = withDefinitions(mapper, slices.Concat(content.Wanted, content.Meanwhile, content.Before))
	hooks, err := itemsOf(mapper, subject, hook.Objects(content.Hooks))
	if err != nil {
		return Needs{}, err
	}
	wanted, err := itemsOf(mapper, subject, content.Wanted)
	if err != nil {
		return Needs{}, err
	}
	meanwhile, err := itemsOf(mapper, subject, content.Meanwhile)
	if err != nil {
		return Needs{}, err
	}
	escalations, err := escalationsOf(slices.Concat(wanted, hooks))
	if err != nil {
		return Needs{}, err
	}
	escalationsMeanwhile, err := escalationsOf(meanwhile)
	if err != nil {
		return Needs{}, err
	}
	needs := Needs{Escalations: append(escalations, escalationsMeanwhile...), created: map[string]struct{}{}}
	var access, advice []Rule
	names := map[target]struct{}{}
	for _, item := range wanted {
		names[item.target] = struct{}{}
		access = append(access, item.unnamed(verbCreate), item.named(item.verbs()...))
		advice = append(advice, item.unnamed(verbList, verbWatch))
		if item.isNamespace() {
			needs.created[item.name] = struct{}{}
		}
	}
	for _, item := range meanwhile {
		access = append(access, item.unnamed(verbCreate), item.named(verbGet, verbPatch))
		advice = append(advice, item.unnamed(verbList, verbWatch))
	}
	onHooks, logs := hookRights(subject, hooks)
	if slices.ContainsFunc(content.Hooks, func(one hook.Hook) bool { return one.Runs(hook.PostDelete) }) {
		onHooks = append(onHooks, toDelete(wanted)...)
	}
	// Of kinds that the cluster does not serve there is none to give up, and none left to drop.
	givenUp, _ := itemsOf(mapper, subject, hook.Objects(content.GivenUp))
	before, _ := itemsOf(mapper, subject, content.Before)
	needs.Hooks, needs.Logs = merged(rightsOf(append(onHooks, toDelete(givenUp)...))), merged(rightsOf(logs))
	access = append(access, toReplaceIssued(subject, content.Before, wanted)...)
	access = append(access, toDrop(slices.Concat(before, meanwhile), names, content.Replaceable)...)
	if subject.Extension != "" {
		advice = append(advice, finalizersOf(subject.Extension))
	}
	needs.Access, needs.Advice = merged(rightsOf(append(access, frontsOutside(wanted, names)...))), merged(rightsOf(append(advice, toClaim(mapper, subject, content.Claimed)...)))
	return needs, nil
}

// toDrop is what it takes to delete what is not wanted any more, and what may be replaced.
func toDrop(before []item, wanted map[target]struct{}, replaceable []schema.GroupKind) (access []Rule) {
	for _, item := range before {
		switch _, stays := wanted[item.target]; {
		case !stays:
			access = append(access, item.named(verbGet, verbDelete))
		case slices.Contains(replaceable, item.object.GroupVersionKind().GroupKind()):
			access = append(access, item.named(verbDelete))
		}
	}
	return access
}

// hookRights are what it takes to run hooks, and what it takes to tell the last line of one that
// has failed.
func hookRights(subject Subject, hooks []item) (needed, logs []Rule) {
	for _, item := range hooks {
		needed = append(needed, item.unnamed(verbCreate), item.named(verbGet, verbDelete))
		if hook.IsAwaited(item.object) {
			pods := target{resource: "pods", namespace: cmp.Or(item.namespace, subject.Namespace)}
			log := target{resource: "pods/log", namespace: pods.namespace}
			logs = append(logs, itemOf(pods).unnamed(verbList), itemOf(log).unnamed(verbGet))
		}
	}
	return needed, logs
}

// toDelete is what it takes to have all of the content go before the hooks that run after that.
func toDelete(content []item) []Rule {
	rules := make([]Rule, len(content))
	for i, item := range content {
		rules[i] = item.named(verbGet, verbDelete)
	}
	return rules
}

// toClaim returns what it takes to set the owner of existing objects, where an admission plugin asks for it.
func toClaim(mapper Mapper, subject Subject, claimed []*unstructured.Unstructured) []Rule {
	items, _ := itemsOf(mapper, subject, claimed) // without kinds that the cluster does not serve
	return toDelete(items)
}

func itemOf(target target) item { return item{target: target} }

// toReplaceIssued is what it takes to have Secrets of the content in the place of those that were issued.
func toReplaceIssued(subject Subject, before []*unstructured.Unstructured, wanted []item) []Rule {
	issued := issuedSecrets(subject, before)
	var rules []Rule
	for _, item := range wanted {
		if _, replaced := issued[item.target]; replaced {
			rules = append(rules, item.named(verbDelete))
		}
	}
	return rules
}

// issuedSecrets are those in which cert-manager keeps what it has issued for the content
// before. One that is wanted stays when its Certificate goes, and only another one of its
// name can be of the type that is wanted.
func issuedSecrets(subject Subject, before []*unstructured.Unstructured) map[target]struct{} {
	issued := map[target]struct{}{}
	for _, object := range before {
		kind := object.GroupVersionKind()
		if kind.Group != "cert-manager.io" || kind.Kind != "Certificate" {
			continue
		}
		name, _, _ := unstructured.NestedString(object.Object, "spec", "secretName")
		namespace := cmp.Or(object.GetNamespace(), subject.Namespace)
		issued[target{resource: "secrets", namespace: namespace, name: name}] = struct{}{}
	}
	return issued
}

// ToList are the rights to list all objects of the resources.
func ToList(resources []schema.GroupResource) []Rule {
	rules := make([]Rule, 0, len(resources))
	for _, resource := range resources {
		rules = append(rules, Rule{PolicyRule: rbacv1.PolicyRule{
			APIGroups: []string{resource.Group}, Resources: []string{resource.Resource}, Verbs: []string{verbList},
		}})
	}
	return rules
}

// finalizersOf is what it takes to block the deletion of an extension by objects
// that it owns.
func finalizersOf(extension string) Rule {
	return Rule{PolicyRule: rbacv1.PolicyRule{
		APIGroups:     []string{"olm.operatorframework.io"},
		Resources:     []string{"clusterextensions/finalizers"},
		ResourceNames: []string{extension},
		Verbs:         []string{verbUpdate},
	}}
}

// managed is what it takes to touch objects: without any of it, a request is refused.
func (n Needs) managed() []Rule { return slices.Concat(n.Access, n.Hooks) }

// Namespaces are those in which rights are needed, sorted. The empty one stands
// for the whole cluster.
func (n Needs) Namespaces() []string {
	set := map[string]struct{}{}
	for _, rule := range slices.Concat(n.Access, n.Hooks, n.Advice, n.Logs) {
		set[rule.Namespace] = struct{}{}
	}
	for _, escalation := range n.Escalations {
		set[escalation.Namespace] = struct{}{}
	}
	return slices.Sorted(maps.Keys(set))
}

// least are the rules of who has all the needs and nothing more.
func (n Needs) least() []Rule {
	rules := n.managed()
	for _, escalation := range n.Escalations {
		rules = append(rules, escalation.least()...)
	}
	return rules
}

// target is an object, or all of a kind, as requests name it.
type target struct {
	group, resource, namespace, name string
}

// item is an object with what it is called in requests.
type item struct {
	target

	object *unstructured.Unstructured
}

// itemsOf gives those that the mapper knows, and an error for the others.
func itemsOf(mapper Mapper, subject Subject, objects []*unstructured.Unstructured) ([]item, error) {
	items := make([]item, 0, len(objects))
	unknown := map[string]error{}
	for _, object := range objects {
		resource, err := mapper(object)
		if err != nil {
			kind := object.GroupVersionKind().String()
			unknown[kind] = fmt.Errorf("looking up the resource of %s: %w", kind, err)
			continue
		}
		found := item{object: object, target: target{
			group: resource.Group, resource: resource.Resource, name: object.GetName(),
		}}
		if resource.Namespaced {
			found.namespace = object.GetNamespace()
			if found.namespace == "" {
				found.namespace = subject.Namespace
			}
		}
		items = append(items, found)
	}
	failures := make([]error, 0, len(unknown))
	for _, kind := range slices.Sorted(maps.Keys(unknown)) {
		failures = append(failures, unknown[kind])
	}
	return items, errors.Join(failures...)
}

// verbs are what is done to a wanted object that is there. An API service goes before what
// serves it when the extension is removed.
func (i item) verbs() []string {
	if i.isRegistration() {
		return []string{verbGet, verbPatch, verbDelete}
	}
	return []string{verbGet, verbPatch}
}

// isRegistration says that the object has the cluster ask a server for an API.
func (i item) isRegistration() bool {
	name, _, _ := unstructured.NestedString(i.object.Object, "spec", "service", "name")
	return i.group == groupRegistrations && i.resource == resourceRegistrations && name != ""
}

// frontsOutside are the rights to look for the Services of API services that are not wanted
// themselves: an API is not registered before its Service is there.
func frontsOutside(wanted []item, names map[target]struct{}) []Rule {
	var access []Rule
	for _, item := range wanted {
		if !item.isRegistration() {
			continue
		}
		front := item.front()
		if _, own := names[front.target]; !own {
			access = append(access, front.named(verbGet))
		}
	}
	return access
}

// front is the Service of an API service.
func (i item) front() item {
	namespace, _, _ := unstructured.NestedString(i.object.Object, "spec", "service", "namespace")
	name, _, _ := unstructured.NestedString(i.object.Object, "spec", "service", "name")
	return item{target: target{resource: "services", namespace: namespace, name: name}}
}

func (i item) isNamespace() bool { return i.group == "" && i.resource == "namespaces" }

// unnamed are rights that cannot be limited to names.
func (i item) unnamed(verbs ...string) Rule {
	return Rule{Namespace: i.namespace, PolicyRule: rbacv1.PolicyRule{
		APIGroups: []string{i.group}, Resources: []string{i.resource}, Verbs: verbs,
	}}
}

// named are rights to the object alone.
func (i item) named(verbs ...string) Rule {
	rule := i.unnamed(verbs...)
	rule.ResourceNames = []string{i.name}
	if i.isNamespace() {
		// Requests to a namespace are asked about inside of it.
		rule.Namespace = i.name
	}
	return rule
}
