package operator_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/clusterextensions/operator-controller/test/operator"
)

// installer is the manifest of the installer, by kind.
func installer(t *testing.T) map[string]unstructured.Unstructured {
	t.Helper()
	objects := map[string]unstructured.Unstructured{}
	decoder := yaml.NewYAMLOrJSONDecoder(bytes.NewReader(operator.Installer), 4096)
	for {
		var object unstructured.Unstructured
		err := decoder.Decode(&object)
		if errors.Is(err, io.EOF) {
			return objects
		}
		if err != nil {
			t.Fatal(err)
		}
		objects[object.GetKind()] = object
	}
}

func as[T any](t *testing.T, object unstructured.Unstructured) T {
	t.Helper()
	var typed T
	if err := runtime.DefaultUnstructuredConverter.FromUnstructuredWithValidation(object.Object, &typed, true); err != nil {
		t.Fatalf("%s: %v", object.GetKind(), err)
	}
	return typed
}

// granted are the rules of the installer anywhere, and those in its namespace.
func granted(t *testing.T) (everywhere, inNamespace []rbacv1.PolicyRule) {
	t.Helper()
	objects := installer(t)
	everywhere = as[rbacv1.ClusterRole](t, objects["ClusterRole"]).Rules
	return everywhere, slices.Concat(everywhere, as[rbacv1.Role](t, objects["Role"]).Rules)
}

func checkCovered(t *testing.T, have, need []rbacv1.PolicyRule) {
	t.Helper()
	if covered, missing := validation.Covers(have, need); !covered {
		t.Errorf("the installer lacks %v", missing)
	}
}

func TestInstallerIsBoundToItsServiceAccount(t *testing.T) {
	t.Parallel()

	objects := installer(t)
	if got := as[corev1.Namespace](t, objects["Namespace"]).Name; got != operator.Namespace {
		t.Errorf("namespace is %q, want %q", got, operator.Namespace)
	}
	account := as[corev1.ServiceAccount](t, objects["ServiceAccount"])
	if account.Name != operator.ServiceAccount || account.Namespace != operator.Namespace {
		t.Errorf("service account is %s/%s", account.Namespace, account.Name)
	}
	for name, subjects := range map[string][]rbacv1.Subject{
		"ClusterRoleBinding": as[rbacv1.ClusterRoleBinding](t, objects["ClusterRoleBinding"]).Subjects,
		"RoleBinding":        as[rbacv1.RoleBinding](t, objects["RoleBinding"]).Subjects,
	} {
		want := rbacv1.Subject{Kind: "ServiceAccount", Name: account.Name, Namespace: account.Namespace}
		if len(subjects) != 1 || subjects[0] != want {
			t.Errorf("%s binds %v, want %v", name, subjects, want)
		}
	}
}

func TestInstallerMayGrantWhatTheOperatorNeeds(t *testing.T) {
	t.Parallel()

	everywhere, _ := granted(t)
	for _, version := range versions(t) {
		read := readBundle(t, version)
		strategy := read.csv.Spec.InstallStrategy.StrategySpec
		for _, permission := range slices.Concat(strategy.ClusterPermissions, strategy.Permissions) {
			checkCovered(t, everywhere, permission.Rules)
		}
		viewer := as[rbacv1.ClusterRole](t, read.others["ClusterRole/widget-viewer"])
		checkCovered(t, everywhere, viewer.Rules)
	}
}

func TestInstallerMayWriteEveryObject(t *testing.T) {
	t.Parallel()

	resources := map[string]rbacv1.PolicyRule{
		"ConfigMap":   {Resources: []string{"configmaps"}},
		"Service":     {Resources: []string{"services"}},
		"ClusterRole": {APIGroups: []string{rbacv1.GroupName}, Resources: []string{"clusterroles"}},
	}
	_, inNamespace := granted(t)
	for _, version := range versions(t) {
		for name, object := range readBundle(t, version).others {
			rule, known := resources[object.GetKind()]
			if !known {
				t.Errorf("%s: this test does not know the resource of the kind", name)
				continue
			}
			checkCovered(t, inNamespace, lifecycle(rule, object.GetName()))
		}
		checkCovered(t, inNamespace, generated())
	}
}

// lifecycle is what it takes to keep and to remove an object of that name.
func lifecycle(rule rbacv1.PolicyRule, name string) []rbacv1.PolicyRule {
	if len(rule.APIGroups) == 0 {
		rule.APIGroups = []string{corev1.GroupName}
	}
	unnamed, named := rule, rule
	unnamed.Verbs = []string{"create", "list", "watch"}
	named.Verbs = []string{"get", "patch", "delete"}
	named.ResourceNames = []string{name}
	return []rbacv1.PolicyRule{unnamed, named}
}

// generated is the same for the objects that are made from the CSV.
func generated() []rbacv1.PolicyRule {
	rbac := []string{rbacv1.GroupName}
	return slices.Concat(
		lifecycle(rbacv1.PolicyRule{Resources: []string{"serviceaccounts"}}, "sample-operator"),
		lifecycle(rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}}, "sample-operator"),
		lifecycle(rbacv1.PolicyRule{
			APIGroups: []string{"apiextensions.k8s.io"},
			Resources: []string{"customresourcedefinitions"},
		}, "widgets.sample.clusterextensions.dev"),
		lifecycle(rbacv1.PolicyRule{APIGroups: rbac, Resources: []string{"clusterroles"}}, "any"),
		lifecycle(rbacv1.PolicyRule{APIGroups: rbac, Resources: []string{"clusterrolebindings"}}, "any"),
		lifecycle(rbacv1.PolicyRule{APIGroups: rbac, Resources: []string{"roles"}}, "any"),
		lifecycle(rbacv1.PolicyRule{APIGroups: rbac, Resources: []string{"rolebindings"}}, "any"),
	)
}
