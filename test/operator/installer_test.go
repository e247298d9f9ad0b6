package operator_test

import (
	"bytes"
	"errors"
	"io"
	"slices"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/util/yaml"
	"k8s.io/component-helpers/auth/rbac/validation"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
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

// configurations are how the operator can be told which namespaces to watch, as far as
// it takes nothing outside of its own.
var configurations = map[string]string{
	"all namespaces": `{}`,
	"its own":        `{"watchNamespace": "` + operator.Namespace + `"}`,
}

// rendered are all objects that are written for a version.
func rendered(t *testing.T, version, configuration string) []*unstructured.Unstructured {
	t.Helper()
	files, err := operator.Bundle(version)
	if err != nil {
		t.Fatal(err)
	}
	parsed, err := bundle.Parse(files)
	if err != nil {
		t.Fatal(err)
	}
	config, err := bundle.ParseConfig(parsed, operator.Namespace, []byte(configuration))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rendering.Objects(bundle.Render(parsed, bundle.Options{InstallNamespace: operator.Namespace, Config: config}))
	if err != nil {
		t.Fatal(err)
	}
	return objects
}

func TestInstallerMayWriteEveryObject(t *testing.T) {
	t.Parallel()

	everywhere, inNamespace := granted(t)
	for _, version := range versions(t) {
		for _, configuration := range configurations {
			for _, object := range rendered(t, version, configuration) {
				have := everywhere
				if object.GetNamespace() != "" {
					have = inNamespace
				}
				checkCovered(t, have, lifecycle(resourceOf(object), object.GetName()))
			}
		}
	}
}

// TestInstallerMayChangeNothingElse: what the sample shows is copied, so every change is
// limited to names, and each of them is one of the bundles.
func TestInstallerMayChangeNothingElse(t *testing.T) {
	t.Parallel()

	written := map[string]bool{}
	for _, version := range versions(t) {
		for _, configuration := range configurations {
			for _, object := range rendered(t, version, configuration) {
				written[resourceOf(object).Resources[0]+"/"+object.GetName()] = true
			}
		}
	}
	_, rules := granted(t)
	for _, rule := range rules {
		switch rule.APIGroups[0] {
		case "sample.clusterextensions.dev", "coordination.k8s.io": // what the operator itself may do, see below
			continue
		}
		named := slices.ContainsFunc(rule.Verbs, func(verb string) bool { return verb == "patch" || verb == "delete" || verb == "update" })
		if named && len(rule.ResourceNames) == 0 && rule.Resources[0] != "events" {
			t.Errorf("the installer may change all %v", rule.Resources)
		}
		for _, name := range rule.ResourceNames {
			isWritten := slices.ContainsFunc(rule.Resources, func(resource string) bool { return written[resource+"/"+name] })
			if !isWritten && rule.Resources[0] != "clusterextensions/finalizers" {
				t.Errorf("the installer may change %v %q, which no version has", rule.Resources, name)
			}
		}
	}
}

// The lease of others would make their operator stop.
func TestOperatorMayChangeItsOwnLeaseOnly(t *testing.T) {
	t.Parallel()

	everywhere, _ := granted(t)
	changing := rbacv1.PolicyRule{APIGroups: []string{"coordination.k8s.io"}, Resources: []string{"leases"}, Verbs: []string{"get", "update", "patch"}}
	if covered, _ := validation.Covers(everywhere, []rbacv1.PolicyRule{changing}); covered {
		t.Error("the installer may change all leases")
	}
	changing.ResourceNames = []string{operator.Package}
	checkCovered(t, everywhere, []rbacv1.PolicyRule{changing})
}

// resourceOf is what an object is called in rules.
func resourceOf(object *unstructured.Unstructured) rbacv1.PolicyRule {
	plural, _ := meta.UnsafeGuessKindToResource(object.GroupVersionKind())
	return rbacv1.PolicyRule{APIGroups: []string{plural.Group}, Resources: []string{plural.Resource}}
}

// lifecycle is what it takes to keep and to remove an object of that name.
func lifecycle(rule rbacv1.PolicyRule, name string) []rbacv1.PolicyRule {
	unnamed, named := rule, rule
	unnamed.Verbs = []string{"create", "list", "watch"}
	named.Verbs = []string{"get", "patch", "delete"}
	named.ResourceNames = []string{name}
	return []rbacv1.PolicyRule{unnamed, named}
}
