package e2e_test

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

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
