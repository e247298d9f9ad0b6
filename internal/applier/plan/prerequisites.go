package plan

import (
	"strings"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// prerequisites are objects of a revision by which the API server decides about its other
// objects, such as the role of a binding, or the definition of a custom resource. A dry run
// of those others is inconclusive: the prerequisites are not there yet.
type prerequisites struct {
	objects map[object.Key]struct{}

	// kinds maps the kinds that CRDs of the revision define to the steps of these CRDs.
	kinds map[schema.GroupKind]*Step

	// limited are namespaces for which it has a quota or limits.
	limited map[string]struct{}

	// policies says that it has policies of admission, which can be about anything.
	policies bool
}

func prerequisitesOf(steps []Step) prerequisites {
	made := prerequisites{
		objects: map[object.Key]struct{}{},
		kinds:   definitionsOf(steps),
		limited: map[string]struct{}{},
	}
	for i := range steps {
		key := steps[i].Key
		made.objects[key] = struct{}{}
		switch {
		case key.Group == corev1.GroupName && (key.Kind == "ResourceQuota" || key.Kind == "LimitRange"):
			made.limited[key.Namespace] = struct{}{}
		case key.Group == admissionregistrationv1.GroupName && strings.Contains(key.Kind, "AdmissionPolicy"):
			made.policies = true
		}
	}
	return made
}

// concern says whether the API server decides about an object by any of them. Webhooks are
// no prerequisites: they are written last.
func (p prerequisites) concern(s *Step) bool {
	_, ownKind := p.kinds[s.Key.GroupKind]
	_, limited := p.limited[s.Key.Namespace]
	return p.policies || ownKind || limited ||
		p.has(corev1.GroupName, "Namespace", "", s.Key.Namespace) ||
		p.hasRoleOf(s) || p.hasAccountOf(s)
}

func (p prerequisites) has(group, kind, namespace, name string) bool {
	_, found := p.objects[object.Key{GroupKind: schema.GroupKind{Group: group, Kind: kind}, Namespace: namespace, Name: name}]
	return found
}

// hasRoleOf is about bindings: who binds a role must have all that it grants.
func (p prerequisites) hasRoleOf(s *Step) bool {
	if s.Key.Group != rbacv1.GroupName || !strings.HasSuffix(s.Key.Kind, "RoleBinding") {
		return false
	}
	kind, name := object.TextIn(s.Object, "roleRef", "kind"), object.TextIn(s.Object, "roleRef", "name")
	namespace := s.Key.Namespace
	if kind == object.ClusterRoleKind.Kind {
		namespace = ""
	}
	return p.has(rbacv1.GroupName, kind, namespace, name)
}

// hasAccountOf is about bare pods: those of workloads are made later.
func (p prerequisites) hasAccountOf(s *Step) bool {
	return s.Key.Group == corev1.GroupName && s.Key.Kind == "Pod" &&
		p.has(corev1.GroupName, "ServiceAccount", s.Key.Namespace, object.TextIn(s.Object, "spec", "serviceAccountName"))
}
