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
	// are, and update of the extension's finalizers, which is needed only where
	// the admission plugin OwnerReferencesPermissionEnforcement is on.
	Advice []Rule

	// Stored is to list the custom resources that a check of definitions looks at;
	// see [ToList]. It is granted, and never missing: the check itself says so.
	Stored []Rule

	// created are the namespaces that the content brings.
	created map[string]struct{}
}

// NeedsOf gives the rights that the subject needs for the content. It fails when
// the mapper does not know a wanted kind, naming all of them, when a role or a
// binding cannot be read, or when they grant more than is compared. Dropped objects
// of unknown kinds are gone.
func NeedsOf(mapper Mapper, subject Subject, content Content) (Needs, error) {
	mapper = withDefinitions(mapper, slices.Concat(content.Wanted, content.Meanwhile, content.Before))
	wanted, err := itemsOf(mapper, subject, content.Wanted)
	if err != nil {
		return Needs{}, err
	}
	meanwhile, err := itemsOf(mapper, subject, content.Meanwhile)
	if err != nil {
		return Needs{}, err
	}
	escalations, err := escalationsOf(wanted)
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
		access = append(access, item.unnamed(verbCreate), item.named(verbGet, verbPatch))
		advice = append(advice, item.unnamed(verbList, verbWatch))
		if item.isNamespace() {
			needs.created[item.name] = struct{}{}
		}
	}
	for _, item := range meanwhile {
		access = append(access, item.unnamed(verbCreate), item.named(verbGet, verbPatch))
		advice = append(advice, item.unnamed(verbList, verbWatch))
	}
	issued := issuedSecrets(subject, content.Before)
	for _, item := range wanted {
		if _, replaced := issued[item.target]; replaced {
			access = append(access, item.named(verbDelete))
		}
	}
	// Kinds that the cluster no longer serves have no objects left to drop.
	before, _ := itemsOf(mapper, subject, content.Before)
	for _, item := range slices.Concat(before, meanwhile) {
		switch _, stays := names[item.target]; {
		case !stays:
			access = append(access, item.named(verbGet, verbDelete))
		case slices.Contains(content.Replaceable, item.object.GroupVersionKind().GroupKind()):
			access = append(access, item.named(verbDelete))
		}
	}
	if subject.Extension != "" {
		advice = append(advice, finalizersOf(subject.Extension))
	}
	needs.Access, needs.Advice = merged(rightsOf(access)), merged(rightsOf(advice))
	return needs, nil
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

// Namespaces are those in which rights are needed, sorted. The empty one stands
// for the whole cluster.
func (n Needs) Namespaces() []string {
	set := map[string]struct{}{}
	for _, rule := range slices.Concat(n.Access, n.Advice) {
		set[rule.Namespace] = struct{}{}
	}
	for _, escalation := range n.Escalations {
		set[escalation.Namespace] = struct{}{}
	}
	return slices.Sorted(maps.Keys(set))
}

// least are the rules of who has all the needs and nothing more.
func (n Needs) least() []Rule {
	rules := slices.Clone(n.Access)
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
