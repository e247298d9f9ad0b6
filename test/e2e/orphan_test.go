package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// settleTime is how long the garbage collector is given to delete what it should not.
const settleTime = 3 * time.Second

// TestContentStaysWhereItIsOrphaned deletes extensions without their content, makes
// them again under the same names, and does both once more at once. Nothing may be
// deleted in between, and the extensions that are there in the end own all of it.
func TestContentStaysWhereItIsOrphaned(t *testing.T) {
	t.Parallel()
	fleet := newFleet(t, "kept", 14, func(i int) bool { return i%7 == 6 })
	fleet.install(t)
	precious := map[string]types.UID{}
	for _, name := range fleet.names {
		installed(t, name, "1.0.0")
		uid, err := createCustomResource(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		precious[name] = uid
	}
	before, err := takeInventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	nothingLost := func(ctx context.Context, owners map[string]types.UID) error {
		found, err := takeInventory(ctx)
		if err != nil {
			return err
		}
		var errs []error
		for _, name := range fleet.names {
			uid, err := customResourceUID(ctx, name)
			errs = append(errs, err)
			if uid != precious[name] {
				errs = append(errs, fmt.Errorf("%s: the custom resource %q is lost: there is %q", name, precious[name], uid))
			}
			if amiss := lost(before[name], found[name]); len(amiss) > 0 {
				errs = append(errs, fmt.Errorf("%s: %q", name, amiss))
			}
			if amiss := notOwnedBy(owners[name], found[name]); len(amiss) > 0 {
				errs = append(errs, fmt.Errorf("%s: %q", name, amiss))
			}
		}
		return errors.Join(errs...)
	}

	fleet.orphan(t)
	stays(t, "content stays without an owner", settleTime, func(ctx context.Context) error { return nothingLost(ctx, nil) })

	fleet.recreate(t, "1.0.0")
	owners := fleet.owners(t)
	stays(t, "content is taken over", settleTime, func(ctx context.Context) error { return nothingLost(ctx, owners) })
	if err := checkRecords(t.Context(), fleet.names, "1.0.0"); err != nil {
		t.Error(err)
	}

	fleet.orphan(t)
	fleet.recreate(t, "1.0.0")
	owners = fleet.owners(t)
	stays(t, "content is taken over at once", settleTime, func(ctx context.Context) error { return nothingLost(ctx, owners) })
	fleet.upgrade(t)
	for _, name := range fleet.names {
		installed(t, name, "1.1.0")
	}
	if err := checkRecords(t.Context(), fleet.names, "1.1.0"); err != nil {
		t.Error(err)
	}
	fleet.remove(t)
	for _, name := range fleet.names {
		nothingLeft(t, name)
	}
}

// TestContentStaysThatNobodySawOrphaned deletes an extension without its content while no
// controller runs, which is when a controller was killed. The garbage collector does not
// know of everything that was written a moment before, so that its owner stays there. The
// next controller sees the extension when the collector is done with it, and lets go of
// the rest.
//
//nolint:paralleltest // it stops the controller of all tests
func TestContentStaysThatNobodySawOrphaned(t *testing.T) {
	fleet := newFleet(t, "unseen", 1, func(int) bool { return false })
	name := fleet.names[0]
	fleet.recreate(t, "1.0.0")
	owner := &ocv1.ClusterExtension{}
	exists(t, owner, "", name)
	precious, err := createCustomResource(t.Context(), name)
	if err != nil {
		t.Fatal(err)
	}
	before, err := takeInventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	written := []client.Object{
		&corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings"}},
		&apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: "things." + name + ".test"}},
	}
	for _, object := range written {
		exists(t, object, object.GetNamespace(), object.GetName())
	}

	t.Run("deletion", func(t *testing.T) {
		standAside(t)
		if err := theSuite.Admin.Delete(t.Context(), owner, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the end of orphaning", func(ctx context.Context) error {
			exists(t, owner, "", name)
			if slices.Contains(owner.Finalizers, metav1.FinalizerOrphanDependents) {
				return fmt.Errorf("finalizers are %q", owner.Finalizers)
			}
			return nil
		})
		for _, object := range written {
			owners := object.GetOwnerReferences()
			kind, err := theSuite.Admin.GroupVersionKindFor(object)
			if err != nil {
				t.Fatal(err)
			}
			now := &metav1.PartialObjectMetadata{}
			now.SetGroupVersionKind(kind)
			exists(t, now, object.GetNamespace(), object.GetName())
			if len(owners) == 0 || len(now.OwnerReferences) > 0 {
				t.Fatalf("%s had the owners %v, and has %v", object.GetName(), owners, now.OwnerReferences)
			}
			before := now.DeepCopy()
			now.OwnerReferences = owners
			if err := theSuite.Admin.Patch(t.Context(), now, client.MergeFrom(before)); err != nil {
				t.Fatal(err)
			}
		}
	})

	gone(t, &ocv1.ClusterExtension{}, "", name)
	stays(t, "content stays without an owner", settleTime, func(ctx context.Context) error {
		found, err := takeInventory(ctx)
		if err != nil {
			return err
		}
		if uid, err := customResourceUID(ctx, name); err != nil || uid != precious {
			return fmt.Errorf("the custom resource %q is lost: there is %q: %w", precious, uid, err)
		}
		if amiss := slices.Concat(lost(before[name], found[name]), notOwnedBy("", found[name])); len(amiss) > 0 {
			return fmt.Errorf("%q", amiss)
		}
		return nil
	})
	fleet.recreate(t, "1.0.0")
	fleet.remove(t)
	nothingLeft(t, name)
}

// orphan deletes the extensions without their content, and waits until they are gone.
func (f *fleet) orphan(t *testing.T) {
	t.Helper()
	for _, name := range f.names {
		extension := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := theSuite.Admin.Delete(t.Context(), extension, client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
			t.Fatal(err)
		}
	}
	for _, name := range f.names {
		gone(t, &ocv1.ClusterExtension{}, "", name)
	}
}

// recreate makes the extensions again and waits until a version is installed.
func (f *fleet) recreate(t *testing.T, installs string) {
	t.Helper()
	for _, name := range f.names {
		extendOnly(t, name, fromCatalog(f.name), version(installs))
	}
	for _, name := range f.names {
		installed(t, name, installs)
	}
}

// owners are the extensions that there are now.
func (f *fleet) owners(t *testing.T) map[string]types.UID {
	t.Helper()
	found := map[string]types.UID{}
	for _, name := range f.names {
		extension := &ocv1.ClusterExtension{}
		exists(t, extension, "", name)
		found[name] = extension.UID
	}
	return found
}
