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

var (
	deletions     = flag.Bool("deletions", false, "delete extensions at every write of an operation")
	deletionEvery = flag.Int("deletion-every", 1, "with -deletions, delete extensions at every so many-th write")
)

// propagations are the ways to delete an extension.
var propagations = []metav1.DeletionPropagation{
	metav1.DeletePropagationBackground, metav1.DeletePropagationForeground, metav1.DeletePropagationOrphan,
}

// TestDeletionAtEveryWrite deletes extensions in the middle of an install, an upgrade,
// a repair and a deletion, in each of the three ways and at each write: the write is on
// its way when the extension is deleted, and arrives when the garbage collector has been
// at work. Then an extension of the same name is made; what went with the one before is
// brought back from a backup for every other of them.
//
// What was to go is gone, what was to stay is still there as the same objects, and the
// new extension has all of it.
//
//nolint:paralleltest // it replaces the controller of all tests
func TestDeletionAtEveryWrite(t *testing.T) {
	if !*deletions {
		t.Skip("takes minutes; make test-long SUITE=deletions runs it")
	}
	every := max(*deletionEvery, 1)
	points := (triedWrites + every - 1) / every
	// A quarter of the extensions is large, and at least one point of each run has such.
	stride := min(points, 4)
	fleet := newFleet(t, "leaving", points*len(propagations), func(i int) bool { return i/len(propagations)%stride == stride-1 })
	c := casualties{fleet: fleet, at: map[string]int{}, how: map[string]metav1.DeletionPropagation{}, precious: map[string]types.UID{}}
	for i, name := range fleet.names {
		c.at[name], c.how[name] = i/len(propagations)*every+1, propagations[i%len(propagations)]
	}
	// Extensions whose writes are held keep a worker, of which a quarter is for large ones.
	fleet.takeOver(t, fmt.Sprintf("--workers=%d", 4*len(fleet.names)))
	for _, phase := range []phase{
		{name: "install", begin: fleet.install, version: "1.0.0"},
		{name: "upgrade", begin: fleet.upgrade, version: "1.1.0"},
		{name: "repair", begin: fleet.damage, version: "1.1.0"},
		{name: "deletion", begin: func(t *testing.T) { t.Helper(); fleet.removeEach(t, c.how) }},
	} {
		c.deleteIn(t, phase)
		c.recreate(t, phase.name)
	}
	fleet.remove(t)
	for _, name := range fleet.names {
		nothingLeft(t, name)
	}
}

// casualties are extensions that are deleted while something is done about them.
type casualties struct {
	fleet *fleet

	// at is the write in whose middle each is deleted, from 1, and how is the way.
	at  map[string]int
	how map[string]metav1.DeletionPropagation

	// version is the last that they had. before is what there was when they were
	// deleted, and precious their custom resources.
	version  string
	before   inventory
	saved    map[string]backup
	precious map[string]types.UID
}

func (c *casualties) deleteIn(t *testing.T, phase phase) {
	t.Helper()
	pause := faultproxy.NewPause(c.at, writerOf)
	c.fleet.proxy.Use(pause.Wrap)
	if phase.version != "" {
		c.version = phase.version
		phase.begin(t)
		c.await(t, phase, pause)
		c.save(t)
		c.fleet.removeEach(t, c.how)
	} else {
		c.save(t)
		phase.begin(t)
	}
	// Whatever the garbage collector does about objects, it does meanwhile.
	time.Sleep(settleTime)
	for _, name := range c.fleet.names {
		pause.Resume(name)
	}
	for _, name := range c.fleet.names {
		gone(t, &ocv1.ClusterExtension{}, "", name)
	}
	c.fleet.proxy.Heal()
	for _, name := range c.fleet.names {
		if c.how[name] != metav1.DeletePropagationOrphan {
			c.precious[name] = ""
		}
	}
	stays(t, "after deletion in the middle of "+phase.name, settleTime, func(ctx context.Context) error {
		found, err := takeInventory(ctx)
		if err != nil {
			return err
		}
		records, err := readRecords(ctx)
		errs := []error{err}
		for _, name := range c.fleet.names {
			if left := len(records[name]); left > 0 && c.how[name] != metav1.DeletePropagationOrphan {
				errs = append(errs, fmt.Errorf("%s has left %d records of its release", name, left))
			}
			write, _ := pause.Held(name)
			errs = append(errs, checkAfterDeletion(ctx, name, c.how[name], write, c.before[name], found[name], c.precious[name]))
		}
		return errors.Join(errs...)
	})
}

// await waits until each extension is at its write, or done without it.
func (c *casualties) await(t *testing.T, phase phase, pause *faultproxy.Pause) {
	t.Helper()
	eventually(t, phase.name+" comes as far as it may", func(ctx context.Context) error {
		seen, err := c.fleet.look(ctx)
		if err != nil {
			return err
		}
		for _, name := range c.fleet.names {
			if _, held := pause.Held(name); !held && !phase.over(c.fleet, seen, name) {
				return fmt.Errorf("%s goes on, with content %q", name, seen.content[name])
			}
		}
		return nil
	})
}

func (c *casualties) save(t *testing.T) {
	t.Helper()
	var err error
	if c.before, err = takeInventory(t.Context()); err != nil {
		t.Fatal(err)
	}
	c.saved = map[string]backup{}
	for i, name := range c.fleet.names {
		if c.how[name] == metav1.DeletePropagationOrphan || i%2 == 0 {
			continue
		}
		if c.saved[name], err = backUp(t.Context(), name); err != nil {
			t.Fatal(err)
		}
	}
}

// recreate makes an extension of each name, which takes over what there is.
func (c *casualties) recreate(t *testing.T, after string) {
	t.Helper()
	restored := map[string]map[string]types.UID{}
	for name, saved := range c.saved {
		var err error
		if restored[name], err = saved.restore(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	c.fleet.recreate(t, c.version)
	owners := c.fleet.owners(t)
	stays(t, "made again after "+after, settleTime, func(ctx context.Context) error {
		found, err := takeInventory(ctx)
		if err != nil {
			return err
		}
		var errs []error
		for _, name := range c.fleet.names {
			errs = append(errs, checkTakenOver(ctx, c.fleet, name, c.version, c.how[name], c.before[name], found[name], owners[name], c.precious[name]))
			for object, uid := range restored[name] {
				if is, there := found[name][object]; is.uid != uid && (there || !isOfOneVersion(object)) {
					errs = append(errs, fmt.Errorf("%s: %s was restored as %q and is %q", name, object, uid, is.uid))
				}
			}
		}
		return errors.Join(append(errs, phase{version: c.version}.check(ctx, c.fleet))...)
	})
	for _, name := range c.fleet.names {
		if c.how[name] == metav1.DeletePropagationOrphan && c.precious[name] != "" {
			continue
		}
		uid, err := createCustomResource(t.Context(), name)
		if err != nil {
			t.Fatal(err)
		}
		c.precious[name] = uid
	}
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
