package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
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

	"github.com/clusterextensions/operator-controller/test/environment"
)

// item is what there is of one object: which one it is, and who owns it.
type item struct {
	uid   types.UID
	owner types.UID // empty for nobody
}

// inventory has the objects of extensions, by extension and by kind and name.
type inventory map[string]map[string]item

// contentKinds are those that the operators of tests have.
var contentKinds = []metav1.TypeMeta{
	{APIVersion: appsv1.SchemeGroupVersion.String(), Kind: "Deployment"},
	{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ConfigMap"},
	{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "Service"},
	{APIVersion: corev1.SchemeGroupVersion.String(), Kind: "ServiceAccount"},
	{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRole"},
	{APIVersion: rbacv1.SchemeGroupVersion.String(), Kind: "ClusterRoleBinding"},
	{APIVersion: apiextensionsv1.SchemeGroupVersion.String(), Kind: "CustomResourceDefinition"},
}

// takeInventory reads the metadata of all content, whoever owns it.
func takeInventory(ctx context.Context) (inventory, error) {
	found := inventory{}
	for _, kind := range contentKinds {
		list := &metav1.PartialObjectMetadataList{TypeMeta: kind}
		if err := theSuite.Admin.List(ctx, list, client.HasLabels{environment.OwnerLabel}); err != nil {
			return nil, err
		}
		for i := range list.Items {
			object := &list.Items[i]
			if environment.IsDying(kind.Kind, object) {
				continue
			}
			extension := object.Labels[environment.OwnerLabel]
			if found[extension] == nil {
				found[extension] = map[string]item{}
			}
			of := item{uid: object.UID}
			if owner := metav1.GetControllerOf(object); owner != nil {
				of.owner = owner.UID
			}
			found[extension][kind.Kind+" "+object.Name] = of
		}
	}
	return found, nil
}

// lost names what of before is not there any more, or is another object by now.
func lost(before, after map[string]item) []string {
	var missing []string
	for name, was := range before {
		switch is, ok := after[name]; {
		case !ok:
			missing = append(missing, name+" is gone")
		case is.uid != was.uid:
			missing = append(missing, name+" was deleted and made again")
		}
	}
	slices.Sort(missing)
	return missing
}

// owned names what does not belong to the given extension.
func notOwnedBy(owner types.UID, found map[string]item) []string {
	var others []string
	for _, name := range slices.Sorted(maps.Keys(found)) {
		if found[name].owner != owner {
			others = append(others, fmt.Sprintf("%s belongs to %q", name, found[name].owner))
		}
	}
	return others
}

// customResource is a Thing of the operator of a package.
func customResource(pkg string) *unstructured.Unstructured {
	object := &unstructured.Unstructured{}
	object.SetAPIVersion(pkg + ".test/v1")
	object.SetKind("Thing")
	object.SetNamespace(pkg)
	object.SetName("precious")
	return object
}

// createCustomResource makes one as soon as the cluster serves its kind.
func createCustomResource(ctx context.Context, pkg string) (types.UID, error) {
	for {
		object := customResource(pkg)
		err := theSuite.Admin.Create(ctx, object)
		if err == nil {
			return object.GetUID(), nil
		}
		if !apierrors.IsNotFound(err) && !strings.Contains(err.Error(), "no matches for kind") {
			return "", err
		}
		select {
		case <-ctx.Done():
			return "", errors.Join(ctx.Err(), err)
		case <-time.After(50 * time.Millisecond):
		}
	}
}

// customResourceUID is empty if there is none.
func customResourceUID(ctx context.Context, pkg string) (types.UID, error) {
	object := customResource(pkg)
	err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(object), object)
	if apierrors.IsNotFound(err) || err != nil && strings.Contains(err.Error(), "no matches for kind") {
		return "", nil
	}
	return object.GetUID(), err
}

// stays waits until check holds, and sees to it that it goes on to hold for some time.
func stays(t *testing.T, what string, span time.Duration, check func(context.Context) error) {
	t.Helper()
	eventually(t, what, check)
	for end := time.Now().Add(span); time.Now().Before(end); time.Sleep(200 * time.Millisecond) {
		if err := check(t.Context()); err != nil {
			t.Fatalf("%s, and then no more: %v", what, err)
		}
	}
}
