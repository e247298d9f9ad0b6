package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/faultproxy"
)

var deletions = flag.Bool("deletions", false, "delete extensions at every write of an operation")

// propagations are the ways to delete an extension.
var propagations = []metav1.DeletionPropagation{
	metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
}

// TestDeletionAtEveryWrite deletes extensions in the middle of an install, an upgrade
// and a repair, in each of the three ways and at each write: the write is on its way
// when the extension is deleted, and arrives when the garbage collector has been at
// work. Then an extension of the same name is made.
//
// What was to go is gone, what was to stay is still there as the same objects, and the
// new extension has all of it.
//
//nolint:paralleltest // it replaces the controller of all tests
func TestDeletionAtEveryWrite(t *testing.T) {
	if !*deletions {
		t.Skip("takes minutes; -deletions runs it")
	}
	fleet := newFleet(t, "leaving", triedWrites*len(propagations), func(i int) bool { return i/len(propagations)%4 == 3 })
	at, how := map[string]int{}, map[string]metav1.DeletionPropagation{}
	for i, name := range fleet.names {
		at[name], how[name] = i/len(propagations)+1, propagations[i%len(propagations)]
	}
	// Extensions whose writes are held keep a worker.
	fleet.takeOver(t, fmt.Sprintf("--workers=%d", len(fleet.names)))
	precious := map[string]types.UID{}
	for _, phase := range []phase{
		{name: "install", begin: fleet.install, version: "1.0.0"},
		{name: "upgrade", begin: fleet.upgrade, version: "1.1.0"},
		{name: "repair", begin: fleet.damage, version: "1.1.0"},
	} {
		deleteIn(t, fleet, phase, at, how, precious)
		for _, name := range fleet.names {
			if precious[name] != "" {
				continue
			}
			uid, err := createCustomResource(t.Context(), name)
			if err != nil {
				t.Fatal(err)
			}
			precious[name] = uid
		}
	}
	fleet.remove(t)
	for _, name := range fleet.names {
		nothingLeft(t, name)
	}
}

func deleteIn(
	t *testing.T, fleet *fleet, phase phase, at map[string]int, how map[string]metav1.DeletionPropagation, precious map[string]types.UID,
) {
	t.Helper()
	pause := faultproxy.NewPause(at, writerOf)
	fleet.proxy.Use(pause.Wrap)
	phase.begin(t)
	eventually(t, phase.name+" comes as far as it may", func(ctx context.Context) error {
		seen, err := fleet.look(ctx)
		if err != nil {
			return err
		}
		for _, name := range fleet.names {
			if _, held := pause.Held(name); !held && !phase.over(fleet, seen, name) {
				return fmt.Errorf("%s goes on, with content %q", name, seen.content[name])
			}
		}
		return nil
	})
	before, err := takeInventory(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	fleet.removeEach(t, how)
	// Whatever the garbage collector does about objects, it does meanwhile.
	time.Sleep(settleTime)
	for _, name := range fleet.names {
		pause.Resume(name)
	}
	for _, name := range fleet.names {
		gone(t, &ocv1.ClusterExtension{}, "", name)
	}
	fleet.proxy.Heal()
	check := func(ctx context.Context) error {
		found, err := takeInventory(ctx)
		if err != nil {
			return err
		}
		var errs []error
		for _, name := range fleet.names {
			write, _ := pause.Held(name)
			errs = append(errs, checkAfterDeletion(ctx, name, how[name], write, before[name], found[name], precious[name]))
		}
		return errors.Join(errs...)
	}
	stays(t, "after deletion in the middle of "+phase.name, settleTime, check)
	for _, name := range fleet.names {
		if how[name] != metav1.DeletePropagationOrphan {
			precious[name] = ""
		}
	}

	fleet.recreate(t, phase.version)
	owners := fleet.owners(t)
	stays(t, "made again after "+phase.name, settleTime, func(ctx context.Context) error {
		found, err := takeInventory(ctx)
		if err != nil {
			return err
		}
		var errs []error
		for _, name := range fleet.names {
			errs = append(errs, checkTakenOver(ctx, fleet, name, phase.version, how[name], before[name], found[name], owners[name], precious[name]))
		}
		return errors.Join(append(errs, phase.check(ctx, fleet))...)
	})
}

// removeEach deletes each extension in its own way, and does not wait.
func (f *fleet) removeEach(t *testing.T, how map[string]metav1.DeletionPropagation) {
	t.Helper()
	for _, name := range f.names {
		extension := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}
		if err := theSuite.Admin.Delete(t.Context(), extension, client.PropagationPolicy(how[name])); err != nil {
			t.Fatal(err)
		}
	}
}

// checkAfterDeletion holds when all or nothing is left, as it was asked for. The write
// that was on its way when the extension was deleted counts as done before.
func checkAfterDeletion(
	ctx context.Context, name string, how metav1.DeletionPropagation, held faultproxy.Write,
	before, found map[string]item, precious types.UID,
) error {
	if how != metav1.DeletePropagationOrphan {
		if len(found) > 0 {
			return fmt.Errorf("%s (%s, %s) has left %q", name, how, held, slices.Sorted(maps.Keys(found)))
		}
		return nil
	}
	var errs []error
	uid, err := customResourceUID(ctx, name)
	if errs = append(errs, err); uid != precious {
		errs = append(errs, fmt.Errorf("%s: the custom resource %q is lost: there is %q", name, precious, uid))
	}
	if held.Method == "DELETE" {
		maps.DeleteFunc(before, func(object string, _ item) bool {
			_, of, _ := strings.Cut(object, " ")
			return strings.HasSuffix(held.Path, "/"+of)
		})
	}
	if amiss := append(lost(before, found), notOwnedBy("", found)...); len(amiss) > 0 {
		errs = append(errs, fmt.Errorf("%s (%s): %q", name, held, amiss))
	}
	return errors.Join(errs...)
}

// checkTakenOver holds when the extension that was made again has the same objects as
// the one that was deleted without them.
func checkTakenOver(
	ctx context.Context, fleet *fleet, name, version string, how metav1.DeletionPropagation,
	before, found map[string]item, owner, precious types.UID,
) error {
	var errs []error
	if amiss := notOwnedBy(owner, found); len(amiss) > 0 {
		errs = append(errs, fmt.Errorf("%s: %q", name, amiss))
	}
	if how != metav1.DeletePropagationOrphan {
		return errors.Join(errs...)
	}
	if amiss := lost(lasting(before, found), found); len(amiss) > 0 {
		errs = append(errs, fmt.Errorf("%s: %q", name, amiss))
	}
	uid, err := customResourceUID(ctx, name)
	if errs = append(errs, err); uid != precious {
		errs = append(errs, fmt.Errorf("%s: the custom resource %q is lost: there is %q", name, precious, uid))
	}
	return errors.Join(errs...)
}

// lasting leaves out what only one of the versions has: it goes and comes with them.
// That what is left is all there is checked elsewhere, by its kind. Names of roles have
// the version in them.
func lasting(before, found map[string]item) map[string]item {
	rest := maps.Clone(before)
	maps.DeleteFunc(rest, func(object string, _ item) bool {
		_, stays := found[object]
		return !stays && isOfOneVersion(object)
	})
	return rest
}

func isOfOneVersion(object string) bool {
	return strings.HasPrefix(object, "ClusterRole") || object == "ConfigMap dropped" || object == "ConfigMap added"
}
