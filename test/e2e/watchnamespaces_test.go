package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// publishWatcher publishes an operator that supports nothing but to watch several namespaces,
// in each of which it may do the same.
func publishWatcher(t *testing.T, name string) {
	t.Helper()
	operator := testkit.Operator{Package: name, Version: "1.0.0"}
	files := operator.Bundle()
	csv := string(files["manifests/csv.yaml"].Data)
	csv = strings.NewReplacer("AllNamespaces", "MultiNamespace", "clusterPermissions", "permissions").Replace(csv)
	files["manifests/csv.yaml"].Data = []byte(csv)
	pushBundle(t, operator, fs.FS(files))
	publishCatalog(t, name, testkit.Catalog(registryHost, operator))
}

func watching(namespaces ...string) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) {
		inline, _ := json.Marshal(map[string]any{"watchNamespaces": append([]string{}, namespaces...)}) // is marshalled; none is no null
		extension.Spec.Config = &ocv1.ClusterExtensionConfig{
			ConfigType: ocv1.ClusterExtensionConfigTypeInline, Inline: &apiextensionsv1.JSON{Raw: inline},
		}
	}
}

// rolesOf waits until an extension has a Role and a RoleBinding in each of the namespaces, and
// in no other one.
func rolesOf(t *testing.T, extension string, want ...string) {
	t.Helper()
	eventually(t, "roles of "+extension, func(ctx context.Context) error {
		var roles rbacv1.RoleList
		var bindings rbacv1.RoleBindingList
		if err := errors.Join(theSuite.Admin.List(ctx, &roles), theSuite.Admin.List(ctx, &bindings)); err != nil {
			return err
		}
		var ofRoles, ofBindings []string
		for i := range roles.Items {
			if isOwnedBy(&roles.Items[i], extension) {
				ofRoles = append(ofRoles, roles.Items[i].Namespace)
			}
		}
		for i := range bindings.Items {
			if isOwnedBy(&bindings.Items[i], extension) {
				ofBindings = append(ofBindings, bindings.Items[i].Namespace)
			}
		}
		slices.Sort(ofRoles)
		slices.Sort(ofBindings)
		if !slices.Equal(ofRoles, want) || !slices.Equal(ofBindings, want) {
			return fmt.Errorf("roles are in %v, bindings in %v, want %v", ofRoles, ofBindings, want)
		}
		return nil
	})
}

func isOwnedBy(object client.Object, extension string) bool {
	return slices.ContainsFunc(object.GetOwnerReferences(), func(owner metav1.OwnerReference) bool {
		return owner.Kind == ocv1.ClusterExtensionKind && owner.Name == extension
	})
}

// TestSeveralWatchedNamespaces is N1, N2 and N5 of the specification.
func TestSeveralWatchedNamespaces(t *testing.T) {
	t.Parallel()
	const name, a, b = "several", "several-a", "several-b"
	publishWatcher(t, name)
	makeNamespace(t, a)
	makeNamespace(t, b)
	extend(t, name, watching(b, name, a))
	installed(t, name, "1.0.0")
	rolesOf(t, name, name, a, b)
	first := deploymentOf(t, name)
	const told = "olm.targetNamespaces"
	if got := first.Spec.Template.Annotations[told]; got != "several,several-a,several-b" {
		t.Errorf("%s is %q", told, got)
	}

	update(t, name, watching(a, name))
	installed(t, name, "1.0.0")
	rolesOf(t, name, name, a)
	second := deploymentOf(t, name)
	if got := second.Spec.Template.Annotations[told]; got != "several,several-a" || second.Generation != first.Generation+1 {
		t.Errorf("%s is %q, generation %d after %d", told, got, second.Generation, first.Generation)
	}

	// N4 and N6: what cannot be is refused, and what is installed stays.
	update(t, name, watching())
	conditionContains(t, name, ocv1.TypeReady, `False InvalidConfiguration: "several.v1.0.0" cannot be changed as wanted: the bundle does not take what is in spec.config.inline: `+
		`field "watchNamespaces" must have at least 1 item`)
	rolesOf(t, name, name, a)
}

// bindIn grants everything in one namespace, as long as that exists.
func bindIn(t *testing.T, namespace, installedTo string) {
	t.Helper()
	if err := theSuite.Admin.Create(t.Context(), &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "e2e-" + installedTo},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: installedTo, Name: installer}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}); err != nil {
		t.Fatal(err)
	}
}

// grantDefinitions grants what an extension takes outside of all namespaces.
func grantDefinitions(t *testing.T, namespace string) {
	t.Helper()
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: "e2e-" + namespace}, Rules: []rbacv1.PolicyRule{
		{APIGroups: []string{apiextensionsv1.GroupName}, Resources: []string{"customresourcedefinitions"}, Verbs: []string{"*"}},
		{APIGroups: []string{ocv1.GroupVersion.Group}, Resources: []string{"clusterextensions/finalizers"}, Verbs: []string{"update"}},
		{APIGroups: []string{namespace + ".test"}, Resources: []string{"*"}, Verbs: []string{"*"}},
	}}
	if err := theSuite.Admin.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := theSuite.Admin.Delete(context.Background(), role); err != nil {
			t.Error(err)
		}
	})
	grant(t, namespace, role.Name)
}

// TestMissingWatchedNamespace is N3 and N7 of the specification, for a ServiceAccount whose
// rights come and go with the namespaces.
func TestMissingWatchedNamespace(t *testing.T) {
	t.Parallel()
	const name, a, b = "lacking-watched", "lacking-watched-a", "lacking-watched-b"
	publishWatcher(t, name)
	makeNamespace(t, name)
	makeNamespace(t, a)
	makeAccount(t, name)
	grantDefinitions(t, name)
	bindIn(t, name, name)
	bindIn(t, a, name)
	extendOnly(t, name, watching(a, b))
	const missing = `namespace "lacking-watched-b" does not exist, or is being deleted`
	condition(t, name, ocv1.TypeProgressing, `True Retrying: error for resolved bundle "lacking-watched.v1.0.0" with version "1.0.0": `+missing)
	conditionContains(t, name, ocv1.TypeReady, `False Retrying: "lacking-watched.v1.0.0" cannot be installed: `+missing+"; create it, with the permissions that ")
	nothingLeft(t, name)

	makeNamespace(t, b)
	conditionContains(t, name, ocv1.TypeReady, "rights are missing: ")
	conditionContains(t, name, ocv1.TypeProgressing, `Namespace:"lacking-watched-b" APIGroups:[rbac.authorization.k8s.io] Resources:[roles] Verbs:[create]`)
	found := &ocv1.ClusterExtension{}
	exists(t, found, "", name)
	for _, condition := range found.Status.Conditions {
		if strings.Contains(condition.Message, `Namespace:"lacking-watched-a"`) {
			t.Errorf("%s tells of rights that are there: %s", condition.Type, condition.Message)
		}
	}
	bindIn(t, b, name)
	installed(t, name, "1.0.0")
	rolesOf(t, name, a, b)

	// What was in a namespace that is gone is gone, whether or not anybody may look.
	remove(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: b}})
	conditionContains(t, name, ocv1.TypeReady, `"lacking-watched.v1.0.0" cannot be repaired: `+missing)
	update(t, name, watching(a))
	installed(t, name, "1.0.0")
	rolesOf(t, name, a)
	conditionContains(t, name, ocv1.TypeReady, `"lacking-watched.v1.0.0" version "1.0.0" is installed`)
}

// TestTerminatingWatchedNamespace is N8 of the specification.
func TestTerminatingWatchedNamespace(t *testing.T) {
	t.Parallel()
	const name, a, b = "ending", "ending-a", "ending-b"
	publishWatcher(t, name)
	makeNamespace(t, a)
	makeNamespace(t, b)
	release := terminate(t, b)
	extend(t, name, watching(a, b))
	const missing = `namespace "ending-b" does not exist, or is being deleted`
	conditionContains(t, name, ocv1.TypeReady, `"ending.v1.0.0" cannot be installed: `+missing)
	silent(t, name)

	release()
	silent(t, name)
	makeNamespace(t, b)
	installed(t, name, "1.0.0")
	rolesOf(t, name, a, b)

	// It leaves again: what is elsewhere is repaired all the same.
	release = terminate(t, b)
	conditionContains(t, name, ocv1.TypeReady, `"ending.v1.0.0" cannot be repaired: `+missing)
	remove(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}})
	exists(t, &appsv1.Deployment{}, name, name)
	release()
	makeNamespace(t, b)
	rolesOf(t, name, a, b)
	installed(t, name, "1.0.0")
}

// terminate deletes a namespace that cannot go until it is released.
func terminate(t *testing.T, namespace string) (release func()) {
	t.Helper()
	held := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: "held", Finalizers: []string{"e2e.test/held"}}}
	if err := theSuite.Admin.Create(t.Context(), held); err != nil {
		t.Fatal(err)
	}
	free := func(ctx context.Context) error {
		return client.IgnoreNotFound(theSuite.Admin.Patch(ctx, held, client.RawPatch("application/merge-patch+json", []byte(`{"metadata":{"finalizers":null}}`))))
	}
	t.Cleanup(func() {
		if err := free(context.Background()); err != nil {
			t.Error(err)
		}
	})
	if err := theSuite.Admin.Delete(t.Context(), &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: namespace}}); err != nil {
		t.Fatal(err)
	}
	// Kubernetes waits five seconds before it deletes what is in the namespace. Until then, the
	// controller gets another answer from the API server.
	gone(t, &corev1.ServiceAccount{}, namespace, "default")
	return func() {
		t.Helper()
		if err := free(t.Context()); err != nil {
			t.Fatal(err)
		}
		gone(t, &corev1.Namespace{}, "", namespace)
	}
}

// silent has the ServiceAccount of an extension send nothing but watches for a while: it waits.
func silent(t *testing.T, namespace string) {
	t.Helper()
	time.Sleep(2 * time.Second) // the last try may be under way
	begin := time.Now()
	time.Sleep(8 * time.Second)
	requests, err := theSuite.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range requests {
		if request.StageTimestamp.After(begin) && request.Verb != "watch" && request.ImpersonatedUser != nil &&
			strings.HasPrefix(request.ImpersonatedUser.Username, "system:serviceaccount:"+namespace+":") {
			t.Errorf("it sends %s %s", request.Verb, request.RequestURI)
		}
	}
}
