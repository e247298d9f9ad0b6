package permission_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// can is a rule: group|resource:name and verbs.
func can(resource string, verbs ...string) rbacv1.PolicyRule {
	resource, name, named := strings.Cut(resource, ":")
	group, resource, _ := strings.Cut(resource, "|")
	rule := rbacv1.PolicyRule{APIGroups: []string{group}, Resources: []string{resource}, Verbs: verbs}
	if named {
		rule.ResourceNames = []string{name}
	}
	return rule
}

const rbac = "rbac.authorization.k8s.io|"

// read makes objects of YAML in which NS is the namespace of the installer and
// also tells objects without a namespace apart from those of other tests.
func (i *installer) read(t *testing.T, documents ...string) permission.Content {
	t.Helper()
	var content permission.Content
	for _, text := range documents {
		object := &unstructured.Unstructured{}
		if err := yaml.Unmarshal([]byte(strings.ReplaceAll(text, "NS", i.subject.Namespace)), object); err != nil {
			t.Fatal(err)
		}
		content.Wanted = append(content.Wanted, object)
	}
	return content
}

func (i *installer) needs(t *testing.T, content permission.Content) permission.Needs {
	t.Helper()
	needs, err := permission.NeedsOf(permission.Served(mapper), i.subject, content)
	if err != nil {
		t.Fatal(err)
	}
	return needs
}

// check gives the lines of what is missing, with NS for the namespace.
func (i *installer) check(t *testing.T, content permission.Content) (missing []permission.Rule, lines []string) {
	t.Helper()
	err := permission.Check(t.Context(), i.clients(), i.needs(t, content))
	if found, ok := errors.AsType[*permission.MissingError](err); ok {
		missing = found.Rules
	} else if err != nil {
		t.Fatal(err)
	}
	for _, rule := range missing {
		lines = append(lines, strings.ReplaceAll(rule.String(), i.subject.Namespace, "NS"))
	}
	return missing, lines
}

const (
	configMap  = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: settings, namespace: NS}"
	deployment = "apiVersion: apps/v1\nkind: Deployment\nmetadata: {name: manager, namespace: NS}\n" +
		"spec: {selector: {matchLabels: {a: b}}, template: {metadata: {labels: {a: b}}, spec: {containers: [{name: c, image: c}]}}}"
	definition = "apiVersion: apiextensions.k8s.io/v1\nkind: CustomResourceDefinition\nmetadata: {name: oxen.NS.test}\n" +
		"spec: {group: NS.test, scope: Cluster, names: {kind: Ox, plural: oxen}, versions: [{name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}]}"
	role = "apiVersion: rbac.authorization.k8s.io/v1\nkind: Role\nmetadata: {name: reader, namespace: NS}\n" +
		`rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]`
	roleBinding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: RoleBinding\nmetadata: {name: bound, namespace: NS}\n" +
		"roleRef: {kind: Role, name: reader}\nsubjects: [{kind: ServiceAccount, name: op, namespace: NS}]"
	clusterRole = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NS-reader}\n" +
		`rules: [{apiGroups: [""], resources: [secrets], verbs: [get]}]`
	clusterRoleBinding = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRoleBinding\nmetadata: {name: NS-bound}\n" +
		"roleRef: {kind: ClusterRole, name: NS-reader}\nsubjects: [{kind: ServiceAccount, name: op, namespace: NS}]"
	gathering = "apiVersion: rbac.authorization.k8s.io/v1\nkind: ClusterRole\nmetadata: {name: NS-gathering}\n" +
		"aggregationRule: {clusterRoleSelectors: [{matchLabels: {NS: gathered}}]}"
)

// bindingOf binds a role of the cluster in the namespace.
func bindingOf(name string) string {
	return strings.Replace(roleBinding, "kind: Role, name: reader", "kind: ClusterRole, name: "+name, 1)
}

// TestCheck holds every verdict against what the API server does: a request is
// refused if and only if something is missing, and with what is missing granted
// none is.
func TestCheck(t *testing.T) {
	t.Parallel()
	written := can("*|configmaps", "get", "create", "patch")
	allRBAC := can(rbac+"*", "get", "create", "patch")
	tests := map[string]struct {
		objects []string
		grant   func(*testing.T, *installer)
		want    []string
	}{
		"a Deployment cannot be created": {
			objects: []string{configMap, deployment},
			grant: func(t *testing.T, i *installer) {
				i.grant(t, i.subject.Namespace, written, can("apps|deployments", "get", "patch"))
			},
			want: []string{`Namespace:"NS" APIGroups:[apps] Resources:[deployments] Verbs:[create]`},
		},
		"no rights at all": {
			objects: []string{configMap, definition},
			want: []string{
				`Namespace:"" APIGroups:[apiextensions.k8s.io] Resources:[customresourcedefinitions] ResourceNames:[oxen.NS.test] Verbs:[get,patch]`,
				`Namespace:"" APIGroups:[apiextensions.k8s.io] Resources:[customresourcedefinitions] Verbs:[create]`,
				`Namespace:"NS" APIGroups:[] Resources:[configmaps] ResourceNames:[settings] Verbs:[get,patch]`,
				`Namespace:"NS" APIGroups:[] Resources:[configmaps] Verbs:[create]`,
			},
		},
		"rights on names": {
			objects: []string{configMap},
			grant: func(t *testing.T, i *installer) {
				i.grant(t, i.subject.Namespace, can("|configmaps:settings", "get", "create"), can("|configmaps:others", "patch"))
			},
			want: []string{
				`Namespace:"NS" APIGroups:[] Resources:[configmaps] ResourceNames:[settings] Verbs:[patch]`,
				`Namespace:"NS" APIGroups:[] Resources:[configmaps] Verbs:[create]`,
			},
		},
		"a role of what is not held": {
			objects: []string{role},
			grant:   func(t *testing.T, i *installer) { i.grant(t, "", allRBAC) },
			want:    []string{`Namespace:"NS" APIGroups:[] Resources:[secrets] Verbs:[get]`},
		},
		"escalate everywhere": {
			objects: []string{role},
			grant:   func(t *testing.T, i *installer) { i.grant(t, "", allRBAC, can(rbac+"roles", "escalate")) },
		},
		"escalate in the namespace": {
			objects: []string{role},
			grant: func(t *testing.T, i *installer) {
				i.grant(t, i.subject.Namespace, allRBAC, can(rbac+"roles", "escalate"))
			},
		},
		"escalate by name": {
			objects: []string{role},
			grant: func(t *testing.T, i *installer) {
				i.grant(t, i.subject.Namespace, allRBAC, can(rbac+"roles:reader", "escalate"))
			},
			want: []string{`Namespace:"NS" APIGroups:[] Resources:[secrets] Verbs:[get]`},
		},
		"a role of the cluster takes rights everywhere": {
			objects: []string{clusterRole},
			grant: func(t *testing.T, i *installer) {
				i.grant(t, "", allRBAC)
				i.grant(t, i.subject.Namespace, can("|secrets", "get"))
			},
			want: []string{`Namespace:"" APIGroups:[] Resources:[secrets] Verbs:[get]`},
		},
		"a binding to a role that comes with it": {
			objects: []string{clusterRole, clusterRoleBinding},
			grant: func(t *testing.T, i *installer) {
				i.grant(t, "", allRBAC, can(rbac+"clusterroles", "escalate"), can(rbac+"clusterroles:"+i.subject.Namespace+"-reader", "bind"))
			},
		},
		"escalate is not bind": {
			objects: []string{clusterRole, clusterRoleBinding},
			grant:   func(t *testing.T, i *installer) { i.grant(t, "", allRBAC, can(rbac+"clusterroles", "escalate")) },
			want:    []string{`Namespace:"" APIGroups:[] Resources:[secrets] Verbs:[get]`},
		},
		"everything, by the group of the namespace": {
			objects: []string{configMap, definition, role, roleBinding, clusterRole, clusterRoleBinding, gathering, bindingOf("view")},
			grant: func(t *testing.T, i *installer) {
				group := rbacv1.Subject{APIGroup: rbacv1.GroupName, Kind: rbacv1.GroupKind, Name: "system:serviceaccounts:" + i.subject.Namespace}
				i.grantTo(t, group, "", can("*|*", "*"), rbacv1.PolicyRule{NonResourceURLs: []string{"*"}, Verbs: []string{"*"}})
			},
		},
		"a role that gathers rules": {
			objects: []string{gathering},
			grant:   func(t *testing.T, i *installer) { i.grant(t, "", allRBAC) },
			want:    []string{`Namespace:"" APIGroups:[rbac.authorization.k8s.io] Resources:[clusterroles] Verbs:[escalate]`},
		},
		"a role of others that can be read and is not covered": {
			objects: []string{bindingOf("view")},
			grant:   func(t *testing.T, i *installer) { i.grant(t, "", allRBAC) },
			want:    []string{`Namespace:"NS" APIGroups:[rbac.authorization.k8s.io] Resources:[clusterroles] ResourceNames:[view] Verbs:[bind]`},
		},
		"a role of others that cannot be read and is not covered": {
			objects: []string{bindingOf("view")},
			grant:   func(t *testing.T, i *installer) { i.grant(t, "", can(rbac+"rolebindings", "*")) },
			want:    []string{`Namespace:"NS" APIGroups:[rbac.authorization.k8s.io] Resources:[clusterroles] ResourceNames:[view] Verbs:[bind]`},
		},
		"a role of others that can be read and is covered": {
			objects: []string{bindingOf("system:service-account-issuer-discovery")},
			grant: func(t *testing.T, i *installer) {
				i.grant(t, "", allRBAC, rbacv1.PolicyRule{NonResourceURLs: []string{"/.well-known/*", "/openid/*"}, Verbs: []string{"get"}})
			},
		},
		"a role of others that cannot be read and is covered": {
			objects: []string{bindingOf("system:service-account-issuer-discovery")},
			grant: func(t *testing.T, i *installer) {
				i.grant(t, "", can(rbac+"rolebindings", "*"), rbacv1.PolicyRule{NonResourceURLs: []string{"/.well-known/*", "/openid/*"}, Verbs: []string{"get"}})
			},
		},
		"a role that nobody has": {
			objects: []string{bindingOf("NS-none")},
			grant:   func(t *testing.T, i *installer) { i.grant(t, "", allRBAC) },
			want:    []string{`Namespace:"NS" APIGroups:[rbac.authorization.k8s.io] Resources:[clusterroles] ResourceNames:[NS-none] Verbs:[bind]`},
		},
		"a role that nobody has and that cannot be read": {
			objects: []string{bindingOf("NS-none")},
			grant:   func(t *testing.T, i *installer) { i.grant(t, "", can(rbac+"rolebindings", "*")) },
			want:    []string{`Namespace:"NS" APIGroups:[rbac.authorization.k8s.io] Resources:[clusterroles] ResourceNames:[NS-none] Verbs:[bind]`},
		},
		"bind in the namespace": {
			objects: []string{bindingOf("view")},
			grant: func(t *testing.T, i *installer) {
				i.grant(t, i.subject.Namespace, can(rbac+"rolebindings", "*"), can(rbac+"clusterroles:view", "bind"))
			},
		},
		"a namespace that does not exist, and what is in it": {
			objects: []string{
				"apiVersion: v1\nkind: Namespace\nmetadata: {name: NS-new}",
				strings.ReplaceAll(configMap, "NS", "NS-new"),
			},
			grant: func(t *testing.T, i *installer) {
				i.grant(t, "", written, can("|namespaces", "create"), can("|namespaces:"+i.subject.Namespace+"-new", "get", "patch"))
			},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			i := newInstaller(t)
			if test.grant != nil {
				test.grant(t, i)
			}
			content := i.read(t, test.objects...)
			missing, lines := i.check(t, content)
			if diff := cmp.Diff(test.want, lines); diff != "" {
				t.Errorf("-want +got:\n%s", diff)
			}
			if refused := i.install(t, content); (len(missing) > 0) != (refused != nil) {
				t.Errorf("%d rights are missing, and the API server says: %v", len(missing), refused)
			}
			for _, rule := range missing {
				i.grant(t, rule.Namespace, rule.PolicyRule)
			}
			if _, lines := i.check(t, content); len(lines) > 0 {
				t.Errorf("with what was missing there is missing: %v", lines)
			}
			if refused := i.install(t, content); refused != nil {
				t.Errorf("with what was missing: %v", refused)
			}
		})
	}
}

// install does what it takes to install the objects and to repair them.
func (i *installer) install(t *testing.T, content permission.Content) (refused error) {
	t.Helper()
	for _, object := range content.Wanted {
		for _, request := range i.requestsFor(t, object) {
			err := request()
			switch {
			case err == nil, apierrors.IsAlreadyExists(err):
			case apierrors.IsForbidden(err), apierrors.IsNotFound(err):
				return err
			default:
				t.Fatal(err)
			}
		}
	}
	return nil
}

// requestsFor are get, create and patch of an object as the installer. Whether
// there is one to get does not matter.
func (i *installer) requestsFor(t *testing.T, object *unstructured.Unstructured) []func() error {
	t.Helper()
	resource := resourceOf(t, i.dynamic, object)
	return []func() error{
		func() error {
			_, err := resource.Get(t.Context(), object.GetName(), metav1.GetOptions{})
			if apierrors.IsNotFound(err) {
				return nil
			}
			return err
		},
		func() error {
			_, err := resource.Create(t.Context(), object.DeepCopy(), metav1.CreateOptions{})
			if err == nil {
				t.Cleanup(func() { remove(t, object) })
			}
			return err
		},
		func() error {
			_, err := resource.Patch(t.Context(), object.GetName(), "application/merge-patch+json",
				[]byte(`{"metadata":{"labels":{"a":"b"}}}`), metav1.PatchOptions{})
			return err
		},
	}
}

func remove(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	client, err := dynamic.NewForConfig(config)
	if err != nil {
		t.Fatal(err)
	}
	err = resourceOf(t, client, object).Delete(context.Background(), object.GetName(), metav1.DeleteOptions{})
	if err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
}

// TestAdviceIsNoNeed has a ServiceAccount that may neither watch nor set finalizers.
func TestAdviceIsNoNeed(t *testing.T) {
	t.Parallel()
	i := newInstaller(t)
	i.grant(t, i.subject.Namespace, can("|configmaps", "get", "create", "patch"))
	needs := i.needs(t, i.read(t, configMap))
	i.requests.Store(0)
	if err := permission.Check(t.Context(), i.clients(), needs); err != nil {
		t.Error(err)
	}
	if got := i.requests.Load(); got != 2 {
		t.Errorf("%d requests, want one for the namespace and one for the cluster", got)
	}
	if len(needs.Advice) == 0 {
		t.Error("nothing is advised")
	}
}

func TestDroppedObjectsAreDeleted(t *testing.T) {
	t.Parallel()
	i := newInstaller(t)
	i.grant(t, i.subject.Namespace, can("|configmaps", "get", "create", "patch"))
	content := i.read(t, configMap)
	content.Before = i.read(t, configMap, strings.Replace(configMap, "settings", "old", 1)).Wanted
	_, lines := i.check(t, content)
	want := []string{`Namespace:"NS" APIGroups:[] Resources:[configmaps] ResourceNames:[old] Verbs:[delete]`}
	if diff := cmp.Diff(want, lines); diff != "" {
		t.Errorf("-want +got:\n%s", diff)
	}
}

// What holds everywhere must not be mixed with what holds in a namespace, and
// rules that come by aggregation count.
func TestReview(t *testing.T) {
	t.Parallel()
	i := newInstaller(t)
	label := map[string]string{"test": i.subject.Namespace}
	createClusterRole(t, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Labels: label}, Rules: []rbacv1.PolicyRule{can("|gathered", "get")},
	})
	gathers := createClusterRole(t, &rbacv1.ClusterRole{
		AggregationRule: &rbacv1.AggregationRule{ClusterRoleSelectors: []metav1.LabelSelector{{MatchLabels: label}}},
	})
	i.bind(t, metav1.ObjectMeta{Name: gathers}, rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: gathers},
		rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: i.subject.Namespace, Name: account})
	i.waitFor(t, "", "gathered")
	i.grant(t, i.subject.Namespace, can("|here", "get"))
	other := newNamespace(t)
	held, err := permission.Review(t.Context(), i.client.AuthorizationV1(), []string{"", i.subject.Namespace, other})
	if err != nil {
		t.Fatal(err)
	}
	if held.Incomplete {
		t.Error("RBAC tells all of its rules")
	}
	has := func(rules []rbacv1.PolicyRule, resource string) bool {
		return slices.ContainsFunc(rules, func(rule rbacv1.PolicyRule) bool { return slices.Contains(rule.Resources, resource) })
	}
	if !has(held.Everywhere, "gathered") || has(held.Everywhere, "here") {
		t.Errorf("everywhere: %v", held.Everywhere)
	}
	if here := held.Namespaces[i.subject.Namespace]; !has(here, "gathered") || !has(here, "here") {
		t.Errorf("in the namespace: %v", here)
	}
	if there := held.Namespaces[other]; !has(there, "gathered") || has(there, "here") {
		t.Errorf("in another namespace: %v", there)
	}
}

// TestGuessed holds the guess against all that an API server serves.
func TestGuessed(t *testing.T) {
	t.Parallel()
	_, lists, err := admin.Discovery().ServerGroupsAndResources()
	if err != nil {
		t.Fatal(err)
	}
	checked := 0
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			t.Fatal(err)
		}
		for _, resource := range list.APIResources {
			if strings.Contains(resource.Name, "/") || !slices.Contains(resource.Verbs, "patch") || strings.HasSuffix(version.Group, ".test") {
				continue
			}
			object := &unstructured.Unstructured{}
			object.SetGroupVersionKind(version.WithKind(resource.Kind))
			// An object may well have a namespace that its kind has no use for.
			object.SetNamespace("any")
			got, err := permission.Guessed(object)
			want := permission.Resource{GroupResource: version.WithResource(resource.Name).GroupResource(), Namespaced: resource.Namespaced}
			if err != nil || got != want {
				t.Errorf("%s is taken for %v, and is %v", resource.Kind, got, want)
			}
			checked++
		}
	}
	if checked < 50 {
		t.Errorf("no more than %d kinds were checked", checked)
	}
}

func TestGuessedOfOthers(t *testing.T) {
	t.Parallel()
	for kind, want := range map[string]string{
		"Gateway": "gateways", "Policy": "policies", "SecurityContextConstraints": "securitycontextconstraints", "PrometheusRule": "prometheusrules",
	} {
		object := &unstructured.Unstructured{}
		object.SetGroupVersionKind(schema.GroupVersionKind{Group: "others.test", Version: "v1", Kind: kind})
		for _, namespace := range []string{"", "ns"} {
			object.SetNamespace(namespace)
			got, err := permission.Guessed(object)
			if err != nil || got.Resource != want || got.Namespaced != (namespace != "") {
				t.Errorf("%s in %q is taken for %v", kind, namespace, got)
			}
		}
	}
}
