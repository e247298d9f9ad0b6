package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
)

const installer = "installer"

// eventually waits for check to hold, and says at the end what was amiss.
func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	testkit.Eventually(t, patience, what, check)
}

// condition waits until a condition of an extension is as described: status,
// reason and the whole message.
func condition(t *testing.T, extension, kind, want string) {
	t.Helper()
	matchCondition(t, extension, kind, func(got string) bool { return got == want }, want)
}

// conditionContains is condition for messages that are only known in part.
func conditionContains(t *testing.T, extension, kind, want string) {
	t.Helper()
	matchCondition(t, extension, kind, func(got string) bool { return strings.Contains(got, want) }, "…"+want+"…")
}

func matchCondition(t *testing.T, extension, kind string, match func(string) bool, want string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%s of %s", kind, extension), func(ctx context.Context) error {
		found := &ocv1.ClusterExtension{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: extension}, found); err != nil {
			return err
		}
		current := meta.FindStatusCondition(found.Status.Conditions, kind)
		if current == nil {
			return fmt.Errorf("absent, want %q", want)
		}
		got := fmt.Sprintf("%s %s: %s", current.Status, current.Reason, current.Message)
		if current.ObservedGeneration != found.Generation || !match(got) {
			return fmt.Errorf("%q at generation %d of %d, want %q", got, current.ObservedGeneration, found.Generation, want)
		}
		return nil
	})
}

// installed waits until a version is installed and nothing is left to do.
func installed(t *testing.T, extension, version string) {
	t.Helper()
	eventually(t, extension+" "+version, func(ctx context.Context) error {
		found := &ocv1.ClusterExtension{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: extension}, found); err != nil {
			return err
		}
		progressing := meta.FindStatusCondition(found.Status.Conditions, ocv1.TypeProgressing)
		if found.Status.Install == nil || found.Status.Install.Bundle.Version != version ||
			!meta.IsStatusConditionTrue(found.Status.Conditions, ocv1.TypeInstalled) ||
			progressing == nil || progressing.Reason != ocv1.ReasonSucceeded || progressing.ObservedGeneration != found.Generation {
			return fmt.Errorf("status is %+v", found.Status)
		}
		return nil
	})
}

// serving waits until the content of a catalog is served.
func serving(t *testing.T, catalog string) {
	t.Helper()
	eventually(t, "catalog "+catalog, func(ctx context.Context) error {
		found := &ocv1.ClusterCatalog{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: catalog}, found); err != nil {
			return err
		}
		if !meta.IsStatusConditionTrue(found.Status.Conditions, ocv1.TypeServing) {
			return fmt.Errorf("conditions are %+v", found.Status.Conditions)
		}
		return nil
	})
}

// operators of a package that only this test uses; the versions replace each
// other.
func operators(pkg string, versions ...string) []testkit.Operator {
	var result []testkit.Operator
	for _, version := range versions {
		result = append(result, testkit.Operator{Package: pkg, Version: version, ConfigMaps: []string{"settings"}})
	}
	return result
}

// publish pushes the bundles of operators, and a catalog that offers them, and
// makes a ClusterCatalog of it that only extensions of this test select.
func publish(t *testing.T, operators ...testkit.Operator) {
	t.Helper()
	for _, operator := range operators {
		pushBundle(t, operator, operator.Bundle())
	}
	publishCatalog(t, operators[0].Package, testkit.Catalog(registryHost, operators...))
}

func pushBundle(t *testing.T, operator testkit.Operator, files fs.FS) {
	t.Helper()
	if err := theSuite.PushBundle(t.Context(), fmt.Sprintf("%s:v%s", operator.Package, operator.Version), files); err != nil {
		t.Fatal(err)
	}
}

func publishCatalog(t *testing.T, name string, files fs.FS) {
	t.Helper()
	pushCatalog(t, name, "v1", files)
	if err := theSuite.CreateCatalog(t.Context(), name, catalogRef(name, "v1"), func(catalog *ocv1.ClusterCatalog) {
		catalog.Labels = map[string]string{"test": name}
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: name}}) })
}

func pushCatalog(t *testing.T, name, tag string, files fs.FS) {
	t.Helper()
	if err := theSuite.PushCatalog(t.Context(), "catalog-"+name+":"+tag, files); err != nil {
		t.Fatal(err)
	}
}

func catalogRef(name, tag string) string { return registryHost + "/catalog-" + name + ":" + tag }

// fromCatalog makes an extension draw from the catalogs of one test only.
func fromCatalog(name string) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) {
		extension.Spec.Source.Catalog.Selector = &metav1.LabelSelector{MatchLabels: map[string]string{"test": name}}
	}
}

func version(versions string) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) { extension.Spec.Source.Catalog.Version = versions }
}

// extend makes a ClusterExtension of a package, in a namespace of its own, as a
// ServiceAccount that may do everything.
func extend(t *testing.T, name string, changes ...func(*ocv1.ClusterExtension)) {
	t.Helper()
	makeNamespace(t, name)
	makeAccount(t, name)
	grant(t, name, "cluster-admin")
	extendOnly(t, name, changes...)
}

// extendOnly makes the ClusterExtension and nothing of what it needs.
func extendOnly(t *testing.T, name string, changes ...func(*ocv1.ClusterExtension)) {
	t.Helper()
	extension := environment.Extension(name, name, installer, append([]func(*ocv1.ClusterExtension){fromCatalog(name)}, changes...)...)
	if err := theSuite.Admin.Create(t.Context(), extension); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, extension) })
}

func makeNamespace(t *testing.T, name string) {
	t.Helper()
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := theSuite.Admin.Create(t.Context(), namespace); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := theSuite.Admin.Delete(context.Background(), namespace); err != nil && !apierrors.IsNotFound(err) {
			t.Error(err)
		}
	})
}

func makeAccount(t *testing.T, namespace string) {
	t.Helper()
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: namespace, Name: installer}}
	if err := theSuite.Admin.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
}

func grant(t *testing.T, namespace, role string) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "e2e-" + namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: namespace, Name: installer}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: role},
	}
	if err := theSuite.Admin.Create(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := theSuite.Admin.Delete(context.Background(), binding); err != nil {
			t.Error(err)
		}
	})
}

func update(t *testing.T, name string, change func(*ocv1.ClusterExtension)) {
	t.Helper()
	if err := theSuite.Update(t.Context(), name, change); err != nil {
		t.Fatal(err)
	}
}

// remove deletes an object and waits until it is gone, or another one has come in
// its place: a repair may be faster than we look. It also serves clean-ups, in
// which the test's own context is over.
func remove(t *testing.T, object client.Object) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(object), object)
	removed := object.GetUID()
	if err == nil {
		err = theSuite.Admin.Delete(ctx, object, client.Preconditions{UID: &removed})
	}
	if err != nil {
		if !apierrors.IsNotFound(err) {
			t.Error(err)
		}
		return
	}
	for {
		err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) || err == nil && object.GetUID() != removed {
			return
		}
		if ctx.Err() != nil {
			t.Errorf("%T %q is not gone: %v", object, object.GetName(), err)
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// replaceController puts another controller, with more arguments, in the place of
// that of all tests until the test ends. It does not wait for the lease of one that
// was killed.
func replaceController(t *testing.T, race bool, arguments ...string) {
	t.Helper()
	start := theSuite.start
	if err := theSuite.controller.Stop(); err != nil {
		t.Fatal(err)
	}
	theSuite.WatchForRaces(race)
	theSuite.start = slices.Concat(start, []string{"--leader-elect=false"}, arguments)
	t.Cleanup(func() {
		theSuite.start = start
		err := theSuite.controller.Stop()
		theSuite.WatchForRaces(true)
		if err := errors.Join(err, theSuite.startController(context.WithoutCancel(t.Context()))); err != nil {
			t.Error(err)
		}
	})
	if err := theSuite.startController(t.Context()); err != nil {
		t.Fatal(err)
	}
}

// logOfItsOwn gives the controllers that are started by a function a log of their own.
// Those that are started after it, also by the end of the test, use that of the suite again.
func logOfItsOwn(t *testing.T, starts func()) (path string) {
	t.Helper()
	before := theSuite.controllerLog
	defer func() { theSuite.controllerLog = before }()
	theSuite.controllerLog = filepath.Join(t.TempDir(), "controller.log")
	starts()
	return theSuite.controllerLog
}

// exists waits for an object.
func exists(t *testing.T, object client.Object, namespace, name string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%T %s/%s", object, namespace, name), func(ctx context.Context) error {
		return theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
	})
}

// gone waits until an object is no longer there.
func gone(t *testing.T, object client.Object, namespace, name string) {
	t.Helper()
	eventually(t, fmt.Sprintf("%T %s/%s", object, namespace, name), func(ctx context.Context) error {
		err := theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, object)
		if err == nil {
			return errors.New("still there")
		}
		return client.IgnoreNotFound(err)
	})
}

// deploymentAvailable waits until the operator runs.
func deploymentAvailable(t *testing.T, namespace, name string) {
	t.Helper()
	eventually(t, "Deployment "+name, func(ctx context.Context) error {
		deployment := &appsv1.Deployment{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Namespace: namespace, Name: name}, deployment); err != nil {
			return err
		}
		if deployment.Status.AvailableReplicas == 0 {
			return fmt.Errorf("status is %+v", deployment.Status)
		}
		return nil
	})
}
