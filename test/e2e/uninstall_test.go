package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// finalizerOfTheOperator is on custom resources that the operator has to let go of. Nobody
// does it but the tests: no program of it runs.
const finalizerOfTheOperator = "operator.test/cleanup"

var (
	refuses = ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyRefuseWhileInUse}
	keeps   = ocv1.ClusterExtensionUninstallConfig{CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyKeep}
	orphans = ocv1.ClusterExtensionUninstallConfig{Policy: ocv1.UninstallPolicyOrphan}
	ordered = ocv1.ClusterExtensionUninstallConfig{CustomResources: ocv1.CustomResourcesUninstallPolicyDeleteFirst}
)

func uninstall(config ocv1.ClusterExtensionUninstallConfig) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) { extension.Spec.Uninstall = &config }
}

// thingOf is a custom resource of the operator of a package.
func thingOf(pkg, namespace, name string, finalizers ...string) *unstructured.Unstructured {
	object := customResource(pkg)
	object.SetNamespace(namespace)
	object.SetName(name)
	object.SetFinalizers(finalizers)
	return object
}

func createThing(t *testing.T, object *unstructured.Unstructured) {
	t.Helper()
	eventually(t, "creating "+object.GetName(), func(ctx context.Context) error { return theSuite.Admin.Create(ctx, object) })
}

func deleteExtension(t *testing.T, name string) {
	t.Helper()
	if err := theSuite.Admin.Delete(t.Context(), &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}); err != nil {
		t.Fatal(err)
	}
}

// letGoOf is what the operator does about a custom resource that is being deleted.
func letGoOf(t *testing.T, object client.Object) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata": {"finalizers": null}}`))
	if err := theSuite.Admin.Patch(t.Context(), object, patch); err != nil && !apierrors.IsNotFound(err) {
		t.Fatal(err)
	}
}

// installWith has one version of an operator installed.
func installWith(t *testing.T, name string, changes ...func(*ocv1.ClusterExtension)) {
	t.Helper()
	publish(t, operators(name, "1.0.0")...)
	extend(t, name, changes...)
	installed(t, name, "1.0.0")
}

// TestU1RefusedWhileInUse deletes an extension with custom resources: it is there, repaired,
// and names them until the last one is gone.
func TestU1RefusedWhileInUse(t *testing.T) {
	t.Parallel()
	const name = "refusing"
	installWith(t, name, uninstall(refuses))
	var things []*unstructured.Unstructured
	for _, one := range []string{"first", "second", "third"} {
		things = append(things, thingOf(name, name, one, finalizerOfTheOperator))
		createThing(t, things[len(things)-1])
	}
	deleteExtension(t, name)
	const named = `3 of things.refusing.test: Thing "first" in namespace "refusing", Thing "second" in namespace "refusing", Thing "third" in namespace "refusing"; `
	condition(t, name, ocv1.TypeReady, "False DeletionBlocked: deletion is refused while there are custom resources: "+named+
		"delete them, or set another spec.uninstall")
	conditionContains(t, name, ocv1.TypeStalled, "True DeletionBlocked: ")
	// Until its pods are ready, which is others' work and takes a while on a busy machine, there
	// is something to tell, and each change of the test has the write refused as a conflict.
	conditionContains(t, name, ocv1.TypeAvailable, "True ")
	costsNothing(t, name)

	deployment := &appsv1.Deployment{}
	exists(t, deployment, name, name)
	if err := theSuite.Admin.Delete(t.Context(), &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}}); err != nil {
		t.Fatal(err)
	}
	exists(t, &corev1.Service{}, name, name)
	if err := theSuite.Admin.Get(t.Context(), client.ObjectKeyFromObject(deployment), deployment); err != nil || deployment.DeletionTimestamp != nil {
		t.Errorf("the operator is gone or goes: %v", err)
	}

	for _, object := range things {
		if err := theSuite.Admin.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		letGoOf(t, object)
	}
	gone(t, &ocv1.ClusterExtension{}, "", name)
	nothingLeft(t, name)
}

// costsNothing makes passes over an extension that is not to go, of which each could ask
// again for what holds it.
func costsNothing(t *testing.T, name string) {
	t.Helper()
	time.Sleep(settleTime) // until its watches have begun
	before, err := theSuite.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	for i := range 250 {
		update(t, name, func(extension *ocv1.ClusterExtension) {
			metav1.SetMetaDataAnnotation(&extension.ObjectMeta, "e2e.test/pass", strconv.Itoa(i))
		})
	}
	time.Sleep(settleTime)
	after, err := theSuite.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	for _, request := range after[len(before):] {
		asInstaller := request.ImpersonatedUser != nil && strings.HasPrefix(request.ImpersonatedUser.Username, "system:serviceaccount:"+name+":")
		about := request.ObjectRef != nil && request.ObjectRef.Name == name && request.ImpersonatedUser == nil
		if (asInstaller || about) && !request.IsEndOfWatch() {
			t.Errorf("a pass over what is not to go sends %s", request)
		}
	}
}

// TestU2CustomResourcesGoFirst has the operator let go of a custom resource that is deleted
// before it.
func TestU2CustomResourcesGoFirst(t *testing.T) {
	t.Parallel()
	const name = "ordered"
	installWith(t, name, uninstall(ordered))
	held := thingOf(name, name, "held", finalizerOfTheOperator)
	createThing(t, held)
	deleteExtension(t, name)
	conditionContains(t, name, ocv1.TypeReady, `1 of things.ordered.test: Thing "held" in namespace "ordered" with finalizers [operator.test/cleanup]`)
	deployment := &appsv1.Deployment{}
	exists(t, deployment, name, name)
	if deployment.DeletionTimestamp != nil {
		t.Error("the operator goes before its custom resources")
	}
	letGoOf(t, held)
	gone(t, &ocv1.ClusterExtension{}, "", name)
	nothingLeft(t, name)

	requests, err := theSuite.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	var deleted []string
	for _, request := range requests {
		if request.Verb == "delete" && request.ObjectRef != nil && request.ObjectRef.Namespace == name {
			deleted = append(deleted, request.ObjectRef.Resource)
		}
	}
	if want := []string{"things", "deployments"}; !slices.Equal(slices.Compact(deleted), want) {
		t.Errorf("deleted were %q, want %q", deleted, want)
	}
}

// TestU3NobodyLetsGo has an operator that does not let go of a custom resource. Somebody else
// does.
func TestU3NobodyLetsGo(t *testing.T) {
	t.Parallel()
	const name = "crashing"
	installWith(t, name, uninstall(ordered))
	held := thingOf(name, name, "held", finalizerOfTheOperator)
	createThing(t, held)
	deleteExtension(t, name)
	conditionContains(t, name, ocv1.TypeReady, "False DeletionBlocked: being deleted, which waits until custom resources are gone, whose finalizers the operator has to remove: "+
		`1 of things.crashing.test: Thing "held" in namespace "crashing" with finalizers [operator.test/cleanup]`)
	letGoOf(t, held)
	gone(t, &ocv1.ClusterExtension{}, "", name)
	nothingLeft(t, name)
}

// TestU4DefinitionsAreKept deletes an extension, makes it again, and compares its custom
// resources.
func TestU4DefinitionsAreKept(t *testing.T) {
	t.Parallel()
	const name = "keeping"
	installWith(t, name, uninstall(keeps))
	createThing(t, thingOf(name, name, "precious", finalizerOfTheOperator))
	text := func() string {
		object := thingOf(name, name, "precious")
		exists(t, object, name, "precious")
		data, err := json.Marshal(object)
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	before, definition := text(), &apiextensionsv1.CustomResourceDefinition{}
	exists(t, definition, "", "things.keeping.test")
	uid := definition.UID

	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
	gone(t, &appsv1.Deployment{}, name, name)
	stays(t, "the definition is kept", settleTime, func(ctx context.Context) error {
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: "things.keeping.test"}, definition); err != nil {
			return err
		}
		if definition.UID != uid || len(definition.OwnerReferences) > 0 || definition.DeletionTimestamp != nil {
			return fmt.Errorf("it is %q of %v, deleted %v", definition.UID, definition.OwnerReferences, definition.DeletionTimestamp)
		}
		return nil
	})
	if after := text(); after != before {
		t.Errorf("the custom resource was %s, and is %s", before, after)
	}

	extendOnly(t, name)
	installed(t, name, "1.0.0")
	exists(t, definition, "", "things.keeping.test")
	if owner := metav1.GetControllerOf(definition); definition.UID != uid || owner == nil || owner.Name != name {
		t.Errorf("the definition is %q of %v, want %q of %s", definition.UID, owner, uid, name)
	}
	if after := text(); after != before {
		t.Errorf("after the reinstall: the custom resource was %s, and is %s", before, after)
	}
	letGoOf(t, thingOf(name, name, "precious"))
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
	nothingLeft(t, name)
}

// TestU5ConversionIsNeeded keeps a definition only when nothing needs the operator that
// converts its objects.
func TestU5ConversionIsNeeded(t *testing.T) {
	t.Parallel()
	const name = "converting"
	operator := operators(name, "1.0.0")[0]
	pushBundle(t, operator, operator.BundleWithWebhooks())
	publishCatalog(t, name, testkit.Catalog(registryHost, operator))
	extend(t, name, uninstall(keeps))
	installed(t, name, "1.0.0")
	definition := &apiextensionsv1.CustomResourceDefinition{}
	exists(t, definition, "", "things.converting.test")
	before := definition.DeepCopy()
	definition.Status.StoredVersions = []string{"v1", "v2"}
	if err := theSuite.Admin.Status().Patch(t.Context(), definition, client.MergeFrom(before)); err != nil {
		t.Fatal(err)
	}
	deleteExtension(t, name)
	conditionContains(t, name, ocv1.TypeReady, `False DeletionBlocked: deletion is refused because definitions cannot be kept: `+
		`CustomResourceDefinition "things.converting.test" is converted by a webhook of the operator: versions v1, v2 are stored, and v1, v2 are served; `)
	exists(t, definition, "", "things.converting.test")
	if definition.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter || metav1.GetControllerOf(definition) == nil {
		t.Error("the definition was changed")
	}
	exists(t, &appsv1.Deployment{}, name, name)
	update(t, name, func(extension *ocv1.ClusterExtension) { extension.Spec.Uninstall = nil })
	gone(t, &ocv1.ClusterExtension{}, "", name)
	nothingLeft(t, name)
}

// TestU6NobodyMayList has neither the ServiceAccount, which is gone, nor the controller list
// custom resources. Then the controller may.
func TestU6NobodyMayList(t *testing.T) {
	t.Parallel()
	const name = "powerless"
	publish(t, operators(name, "1.0.0")...)
	makeNamespace(t, name)
	makeAccount(t, name)
	binding := bind(t, name, "cluster-admin", name, installer)
	extendOnly(t, name, uninstall(refuses))
	installed(t, name, "1.0.0")
	object := thingOf(name, name, "precious")
	createThing(t, object)
	for _, one := range []client.Object{binding, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: installer}}} {
		if err := theSuite.Admin.Delete(t.Context(), one); err != nil {
			t.Fatal(err)
		}
	}
	deleteExtension(t, name)
	conditionContains(t, name, ocv1.TypeReady, `False DeletionBlocked: deletion is refused because it is not known how many custom resources there are: `+
		`neither ServiceAccount "powerless/installer" nor the controller may list things.powerless.test: give one of them that right`)

	role := &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-lists-" + name},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{name + ".test"}, Resources: []string{"things"}, Verbs: []string{"list", "watch"}}},
	}
	if err := theSuite.Admin.Create(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, role) })
	namespace, account, _ := strings.Cut(strings.TrimPrefix(environment.ControllerUser, "system:serviceaccount:"), ":")
	own := bind(t, "lists-"+name, role.Name, namespace, account)
	t.Cleanup(func() { remove(t, own) })
	conditionContains(t, name, ocv1.TypeReady, `1 of things.powerless.test: Thing "precious" in namespace "powerless"`)
	if err := theSuite.Admin.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	gone(t, &ocv1.ClusterExtension{}, "", name)
	nothingLeft(t, name)
}

func bind(t *testing.T, name, role, namespace, account string) *rbacv1.ClusterRoleBinding {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-" + name},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	if err := theSuite.Admin.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	return binding
}

// TestU7NamespaceGoesFirst deletes the namespace of an operator before its extension, which
// does not wait for ever.
func TestU7NamespaceGoesFirst(t *testing.T) {
	t.Parallel()
	const name = "homeless"
	installWith(t, name, uninstall(refuses))
	makeNamespace(t, "homeless-elsewhere")
	object := thingOf(name, "homeless-elsewhere", "precious")
	createThing(t, object)
	remove(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	deleteExtension(t, name)
	conditionContains(t, name, ocv1.TypeReady, `False DeletionBlocked: deletion is refused while there are custom resources: `+
		`1 of things.homeless.test: Thing "precious" in namespace "homeless-elsewhere"; `)
	if err := theSuite.Admin.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
	gone(t, &ocv1.ClusterExtension{}, "", name)
	nothingLeft(t, name)
}

// TestU8WithoutAPolicy has an extension as the reference implementation knows it: it has
// the finalizers that it has there, and all of its content goes at once.
func TestU8WithoutAPolicy(t *testing.T) {
	t.Parallel()
	const name = "ruthless"
	installWith(t, name)
	createThing(t, thingOf(name, name, "precious"))
	extension := &ocv1.ClusterExtension{}
	exists(t, extension, "", name)
	if want := []string{ocv1.CleanupUnpackCacheFinalizer, ocv1.CleanupContentManagerCacheFinalizer}; !slices.Equal(extension.Finalizers, want) {
		t.Errorf("finalizers are %q, want %q", extension.Finalizers, want)
	}
	update(t, name, uninstall(refuses))
	finalizer := func(want bool) {
		eventually(t, "the finalizer of policies", func(ctx context.Context) error {
			err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: name}, extension)
			if slices.Contains(extension.Finalizers, ocv1.UninstallPolicyFinalizer) != want {
				return errors.Join(err, fmt.Errorf("finalizers are %q", extension.Finalizers))
			}
			return err
		})
	}
	finalizer(true)
	update(t, name, func(extension *ocv1.ClusterExtension) { extension.Spec.Uninstall = nil })
	finalizer(false)
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
	nothingLeft(t, name)
}
