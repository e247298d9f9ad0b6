//go:build linux

package node_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/environment"
	"github.com/clusterextensions/operator-controller/test/node"
	"github.com/clusterextensions/operator-controller/test/operator"
)

// patience is how long a test waits for what takes seconds on an idle machine.
const patience = 3 * time.Minute

const installer = "installer"

func eventually(t *testing.T, what string, check func(context.Context) error) {
	t.Helper()
	testkit.Eventually(t, patience, what, check)
}

// condition reads a condition of a ClusterExtension as "Status Reason: message"; it is
// empty while there is none of this generation.
func condition(ctx context.Context, extension, kind string) (string, error) {
	found := &ocv1.ClusterExtension{}
	if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: extension}, found); err != nil {
		return "", err
	}
	current := meta.FindStatusCondition(found.Status.Conditions, kind)
	if current == nil || current.ObservedGeneration != found.Generation {
		return "", nil
	}
	return fmt.Sprintf("%s %s: %s", current.Status, current.Reason, current.Message), nil
}

// becomes waits until a condition contains all parts, the first at its beginning.
func becomes(t *testing.T, extension, kind string, parts ...string) {
	t.Helper()
	eventually(t, kind+" of "+extension, func(ctx context.Context) error {
		got, err := condition(ctx, extension, kind)
		if err != nil {
			return err
		}
		return containsAll(got, parts)
	})
}

func containsAll(got string, parts []string) error {
	for i, part := range parts {
		if !strings.Contains(got, part) || i == 0 && !strings.HasPrefix(got, part) {
			return fmt.Errorf("it is %q, want …%s…", got, part)
		}
	}
	return nil
}

// ready waits until a version is installed and runs.
func ready(t *testing.T, extension, version string) {
	t.Helper()
	eventually(t, extension+" "+version, func(ctx context.Context) error {
		found := &ocv1.ClusterExtension{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: extension}, found); err != nil {
			return err
		}
		current := meta.FindStatusCondition(found.Status.Conditions, ocv1.TypeReady)
		if found.Status.Install == nil || found.Status.Install.Bundle.Version != version ||
			current == nil || current.Status != metav1.ConditionTrue || current.ObservedGeneration != found.Generation {
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

// kubectl runs as the administrator, with input.
func kubectl(t *testing.T, input string, args ...string) string {
	t.Helper()
	output, err := theSuite.Kubectl(context.WithoutCancel(t.Context()), input, args...)
	if err != nil {
		t.Fatal(err)
	}
	return output
}

// offer publishes versions of a variant in a catalog of its own, each replacing the one
// before. What differs between versions is up to change.
func offer(t *testing.T, name string, change func(version string, variant *operator.Variant), versions ...string) {
	t.Helper()
	var offered []testkit.Operator
	for i, version := range versions {
		source := theSources[min(i, len(theSources)-1)]
		variant := operator.Variant{Name: name, Image: node.Image(operator.Package, "v"+source)}
		if change != nil {
			change(version, &variant)
		}
		bundle, err := variant.Bundle(source)
		if err != nil {
			t.Fatal(err)
		}
		if err := theSuite.content.PushBundle(t.Context(), fmt.Sprintf("%s:v%s", name, version), bundle); err != nil {
			t.Fatal(err)
		}
		offered = append(offered, testkit.Operator{Package: name, Version: version})
	}
	target := "catalog-" + name
	if err := theSuite.content.PushCatalog(t.Context(), target+":v1", testkit.Catalog(node.Registry, offered...)); err != nil {
		t.Fatal(err)
	}
	if err := theSuite.content.CreateCatalog(t.Context(), name, node.Registry+"/"+target+":v1"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: name}}) })
	serving(t, name)
}

// theSources are the versions of the sample operator that variants are made from.
var theSources = versions

// extend makes a ClusterExtension of a package, as a ServiceAccount that may do
// everything: rights are the subject of other tests.
func extend(t *testing.T, name, version string) {
	t.Helper()
	account := rbacv1.Subject{Kind: rbacv1.ServiceAccountKind, Namespace: name, Name: installer}
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: "node-" + name},
		Subjects:   []rbacv1.Subject{account},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	namespace := &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}}
	extension := environment.Extension(name, name, installer, func(extension *ocv1.ClusterExtension) {
		extension.Spec.Source.Catalog.Version = version
	})
	for _, object := range []client.Object{
		namespace, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: installer}}, binding, extension,
	} {
		if err := theSuite.Admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	t.Cleanup(func() {
		for _, object := range []client.Object{extension, binding, namespace} {
			remove(t, object)
		}
	})
}

// upgrade changes the range of versions of an extension.
func upgrade(t *testing.T, name, version string) {
	t.Helper()
	if err := theSuite.content.Update(t.Context(), name, func(extension *ocv1.ClusterExtension) {
		extension.Spec.Source.Catalog.Version = version
	}); err != nil {
		t.Fatal(err)
	}
}

// remove deletes an object and waits until it is gone.
func remove(t *testing.T, object client.Object) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), patience)
	defer cancel()
	if err := theSuite.Admin.Delete(ctx, object); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
		return
	}
	for {
		err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(object), object)
		if apierrors.IsNotFound(err) {
			return
		}
		if ctx.Err() != nil {
			t.Errorf("%T %q is not gone: %v", object, object.GetName(), err)
			return
		}
		time.Sleep(100 * time.Millisecond)
	}
}

// pods are those of an operator, or of the controller, that are not on their way out.
func pods(ctx context.Context, namespace, app string) ([]corev1.Pod, error) {
	list := &corev1.PodList{}
	if err := theSuite.Admin.List(ctx, list, client.InNamespace(namespace), client.MatchingLabels{"app.kubernetes.io/name": app}); err != nil {
		return nil, err
	}
	var found []corev1.Pod
	for _, pod := range list.Items {
		if pod.DeletionTimestamp == nil {
			found = append(found, pod)
		}
	}
	return found, nil
}

var errNoPod = errors.New("there is no pod")

// widget is one of a variant.
func widget(group, namespace, name string, size int64) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": size}}}
	made.SetAPIVersion(group + "/v1alpha1")
	made.SetKind("Widget")
	made.SetNamespace(namespace)
	made.SetName(name)
	return made
}

// kept waits until the operator has taken care of a new Widget.
func kept(t *testing.T, group, namespace, name string) {
	t.Helper()
	made := widget(group, namespace, name, 3)
	eventually(t, "a Widget", func(ctx context.Context) error {
		err := theSuite.Admin.Create(ctx, made)
		if apierrors.IsAlreadyExists(err) {
			return nil
		}
		return err
	})
	eventually(t, "status of the Widget", func(ctx context.Context) error {
		if err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(made), made); err != nil {
			return err
		}
		if isReady, _, _ := unstructured.NestedBool(made.Object, "status", "ready"); !isReady {
			return fmt.Errorf("it is %v", made.Object)
		}
		return nil
	})
}

// deploymentOf reads the Deployment of an operator.
func deploymentOf(t *testing.T, name string) *appsv1.Deployment {
	t.Helper()
	found := &appsv1.Deployment{}
	if err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Namespace: name, Name: name}, found); err != nil {
		t.Fatal(err)
	}
	return found
}
