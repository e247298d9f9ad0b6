package e2e_test

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"maps"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/environment"
)

var (
	sequences    = flag.Int("sequences", 1, "how many random sequences of deletions to try")
	sequenceSeed = flag.Uint64("sequence-seed", 1, "what the random sequences follow from")
)

// stepsOfSequence is how much happens to each extension in a sequence.
const stepsOfSequence = 4

// TestRandomDeletions lets random things happen to extensions with custom resources:
// they are deleted in each way, made again at once or later, restored from a backup,
// upgraded and damaged, and the controller is killed. After each sequence everything
// is as a model of it says: what was to stay are the same objects as before.
//
//nolint:paralleltest // it replaces the controller of all tests
func TestRandomDeletions(t *testing.T) {
	fleet := newFleet(t, "random", 20, func(i int) bool { return i%10 == 9 })
	replaceController(t, false)
	serving(t, fleet.name)
	lives := make([]*life, 0, len(fleet.names))
	for _, name := range fleet.names {
		lives = append(lives, &life{fleet: fleet, name: name, stays: map[string]types.UID{}})
	}
	for n := range *sequences {
		seed := *sequenceSeed + uint64(n)
		runSequence(t, lives, seed)
		if t.Failed() {
			t.Fatalf("with -sequence-seed=%d", seed)
		}
		t.Logf("sequence %d holds", seed)
	}
	for _, l := range lives {
		l.cleanUp(t)
	}
}

func runSequence(t *testing.T, lives []*life, seed uint64) {
	t.Helper()
	errs := make([]error, len(lives))
	var group sync.WaitGroup
	for i, l := range lives {
		group.Go(func() {
			random := rand.New(rand.NewPCG(seed, uint64(i)))
			for range stepsOfSequence {
				if errs[i] = l.step(t.Context(), random); errs[i] != nil {
					return
				}
				time.Sleep(time.Duration(random.IntN(1500)) * time.Millisecond)
			}
		})
	}
	random := rand.New(rand.NewPCG(seed, 1<<32))
	if random.IntN(2) == 0 {
		time.Sleep(time.Duration(random.IntN(3000)) * time.Millisecond)
		if err := errors.Join(theSuite.controller.Kill(), theSuite.startController(t.Context())); err != nil {
			t.Fatal(err)
		}
	}
	group.Wait()
	if err := errors.Join(errs...); err != nil {
		t.Fatal(err)
	}
	stays(t, fmt.Sprintf("sequence %d", seed), settleTime, func(ctx context.Context) error {
		found, err := takeInventory(ctx)
		if err != nil {
			return err
		}
		seen, err := lives[0].fleet.look(ctx)
		if err != nil {
			return err
		}
		var errs []error
		for _, l := range lives {
			if err := l.check(ctx, seen, found[l.name]); err != nil {
				errs = append(errs, fmt.Errorf("%s, after %q: %w", l.name, l.steps, err))
			}
		}
		return errors.Join(errs...)
	})
	for _, l := range lives {
		l.steps = nil
	}
}

// life is what must be there of one extension.
type life struct {
	fleet *fleet
	name  string

	// version is the one that is wanted; empty if the extension was deleted.
	version string

	// stays are objects that no deletion was meant for, once they were kept by one.
	stays map[string]types.UID

	// precious is the custom resource; empty if there need not be one.
	precious types.UID

	// clean says that nothing may be left: the extension had all that it has when it
	// was deleted with it. leftovers says that there may be objects that an extension
	// was yet to take over when it was deleted: they belong to nobody.
	clean, leftovers bool

	// steps are those of the present sequence.
	steps []string
}

func (l *life) step(ctx context.Context, random *rand.Rand) error {
	var what string
	var err error
	switch roll := random.IntN(12); {
	case l.version == "":
		what, err = "create", l.create(ctx, random)
	case roll < 2:
		what, err = "edit", l.edit(ctx)
	case roll < 4:
		what, err = "damage", l.damage(ctx)
	case roll < 5:
		what, err = "backup and restore", l.restore(ctx)
	case roll < 8:
		what, err = "delete", l.delete(ctx, propagations[random.IntN(len(propagations))])
	case roll < 10:
		what = "replace"
		if err = l.delete(ctx, propagations[random.IntN(len(propagations))]); err == nil {
			err = l.create(ctx, random)
		}
	default:
		what, err = "use", l.use(ctx)
	}
	if err != nil {
		return fmt.Errorf("%s of %s: %w", what, l.name, err)
	}
	return nil
}

func (l *life) note(step string) { l.steps = append(l.steps, step) }

// create waits until the last extension of the name is gone.
func (l *life) create(ctx context.Context, random *rand.Rand) error {
	maps.DeleteFunc(l.stays, func(name string, _ types.UID) bool { return isOfOneVersion(name) })
	l.version = []string{"1.0.0", "1.1.0"}[random.IntN(2)]
	l.note("create " + l.version)
	return l.createExtension(ctx)
}

func (l *life) createExtension(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	for {
		extension := environment.Extension(l.name, l.name, installer, fromCatalog(l.fleet.name), version(l.version),
			func(e *ocv1.ClusterExtension) {
				e.Spec.Source.Catalog.UpgradeConstraintPolicy = ocv1.UpgradeConstraintPolicySelfCertified
			})
		err := theSuite.Admin.Create(ctx, extension)
		if err == nil || !apierrors.IsAlreadyExists(err) {
			return err
		}
		select {
		case <-ctx.Done():
			return errors.Join(ctx.Err(), err)
		case <-time.After(10 * time.Millisecond):
		}
	}
}

func (l *life) edit(ctx context.Context) error {
	maps.DeleteFunc(l.stays, func(name string, _ types.UID) bool { return isOfOneVersion(name) })
	l.version = map[string]string{"1.0.0": "1.1.0", "1.1.0": "1.0.0"}[l.version]
	l.note("edit " + l.version)
	return theSuite.Update(ctx, l.name, version(l.version))
}

// damage takes an object away and changes another one.
func (l *life) damage(ctx context.Context) error {
	l.note("damage")
	service := &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: l.name, Name: l.name}}
	delete(l.stays, "Service "+l.name)
	if err := client.IgnoreNotFound(theSuite.Admin.Delete(ctx, service)); err != nil {
		return err
	}
	settings := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: l.name, Name: "settings"}}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null},"data":{"version":"changed"}}`))
	return client.IgnoreNotFound(theSuite.Admin.Patch(ctx, settings, patch))
}

// use makes a custom resource if the extension has its definition.
func (l *life) use(ctx context.Context) error {
	owner, settled, err := l.extension(ctx)
	if err != nil || !settled || l.precious != "" {
		return err
	}
	definition := &metav1.PartialObjectMetadata{TypeMeta: contentKinds[len(contentKinds)-1]}
	err = theSuite.Admin.Get(ctx, client.ObjectKey{Name: "things." + l.name + ".test"}, definition)
	if err != nil || metav1.GetControllerOf(definition) == nil || metav1.GetControllerOf(definition).UID != owner {
		return client.IgnoreNotFound(err)
	}
	l.note("use")
	if l.precious, err = createCustomResource(ctx, l.name); apierrors.IsAlreadyExists(err) {
		l.precious, err = customResourceUID(ctx, l.name) // left by an extension that had not settled
	}
	return err
}

// extension says which one there is, and whether it has settled.
func (l *life) extension(ctx context.Context) (owner types.UID, settled bool, err error) {
	extension := &ocv1.ClusterExtension{}
	if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: l.name}, extension); err != nil {
		return "", false, err
	}
	seen := &world{extensions: map[string]*ocv1.ClusterExtension{l.name: extension}}
	return extension.UID, seen.settled(l.name, l.version), nil
}

func (l *life) delete(ctx context.Context, propagation metav1.DeletionPropagation) error {
	owner, settled, err := l.extension(ctx)
	if err != nil {
		return err
	}
	before, err := takeInventory(ctx)
	if err != nil {
		return err
	}
	l.note(fmt.Sprintf("delete %s, settled %t", propagation, settled))
	extension := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: l.name}}
	if err := theSuite.Admin.Delete(ctx, extension, client.PropagationPolicy(propagation)); err != nil {
		return err
	}
	l.version = ""
	// What was damaged a moment ago may belong to nobody: then it stays.
	settled = settled && len(notOwnedBy(owner, before[l.name])) == 0
	if propagation != metav1.DeletePropagationOrphan {
		clear(l.stays)
		l.precious, l.clean = "", settled && !l.leftovers
		l.leftovers = l.leftovers || !settled
		return nil
	}
	l.clean = false
	for name, found := range before[l.name] {
		if !settled && isOfOneVersion(name) {
			continue // an upgrade may be about to delete it
		}
		if found.owner == owner || found.owner == "" {
			l.stays[name] = found.uid
		}
	}
	return nil
}

// restore deletes everything that a backup has and makes it again from there: other
// objects of the same names, owned by nobody.
func (l *life) restore(ctx context.Context) error {
	owner, settled, err := l.extension(ctx)
	if err != nil || !settled || l.leftovers {
		return err
	}
	found, err := takeInventory(ctx)
	if err != nil || len(notOwnedBy(owner, found[l.name])) > 0 {
		return err // a part would be left that belongs to nobody
	}
	saved, err := backUp(ctx, l.name)
	if err != nil {
		return err
	}
	wanted := l.version
	if err := l.delete(ctx, metav1.DeletePropagationBackground); err != nil {
		return err
	}
	l.note("restore")
	if err := l.awaitNothing(ctx); err != nil {
		return err
	}
	restored, err := saved.restore(ctx)
	if err != nil {
		return err
	}
	maps.Copy(l.stays, restored)
	if l.precious != "" {
		if l.precious, err = createCustomResource(ctx, l.name); err != nil {
			return err
		}
	}
	l.version = wanted
	return l.createExtension(ctx)
}

func (l *life) awaitNothing(ctx context.Context) error {
	for end := time.Now().Add(patience); ; {
		left, err := takeInventory(ctx)
		if err != nil {
			return err
		}
		records, err := readRecords(ctx)
		if err != nil {
			return err
		}
		err = theSuite.Admin.Get(ctx, client.ObjectKey{Name: l.name}, &ocv1.ClusterExtension{})
		definition := &metav1.PartialObjectMetadata{TypeMeta: contentKinds[len(contentKinds)-1]}
		dying := theSuite.Admin.Get(ctx, client.ObjectKey{Name: "things." + l.name + ".test"}, definition)
		if len(left[l.name]) == 0 && len(records[l.name]) == 0 && apierrors.IsNotFound(err) && apierrors.IsNotFound(dying) {
			return nil
		}
		if time.Now().After(end) {
			return fmt.Errorf("after %q, %v and %d records are left; extension: %w; definition: %w", l.steps, left[l.name], len(records[l.name]), err, dying)
		}
		time.Sleep(50 * time.Millisecond)
	}
}

// check holds the world against the model, when nothing happens any more.
func (l *life) check(ctx context.Context, seen *world, found map[string]item) error {
	var errs []error
	uid, err := customResourceUID(ctx, l.name)
	if errs = append(errs, err); l.precious != "" && uid != l.precious {
		errs = append(errs, fmt.Errorf("the custom resource %q is lost: there is %q", l.precious, uid))
	}
	owner := types.UID("")
	switch extension := seen.extensions[l.name]; {
	case l.version == "" && extension != nil:
		errs = append(errs, errors.New("the extension is still there"))
	case l.version == "" && l.clean && len(found) > 0:
		errs = append(errs, fmt.Errorf("left are %q", slices.Sorted(maps.Keys(found))))
	case l.version == "":
	case !seen.settled(l.name, l.version):
		errs = append(errs, fmt.Errorf("%s is not there yet: %+v", l.version, extension))
	default:
		owner = extension.UID
		if want := l.fleet.contentOf(l.name, l.version); !slices.Equal(want, seen.content[l.name]) {
			errs = append(errs, fmt.Errorf("content is %q, want %q", seen.content[l.name], want))
		}
		errs = append(errs, checkRecords(ctx, []string{l.name}, l.version))
	}
	for name, uid := range l.stays {
		if is := found[name]; is.uid != uid {
			errs = append(errs, fmt.Errorf("%s is %q, want the object %q", name, is.uid, uid))
		}
	}
	if l.leftovers {
		maps.DeleteFunc(found, func(_ string, object item) bool { return object.owner == "" })
	}
	if amiss := notOwnedBy(owner, found); len(amiss) > 0 {
		errs = append(errs, fmt.Errorf("%q", amiss))
	}
	return errors.Join(errs...)
}

// cleanUp makes an extension have everything, and go with it.
func (l *life) cleanUp(t *testing.T) {
	t.Helper()
	if l.version == "" {
		l.version = "1.1.0"
		if err := l.createExtension(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	installed(t, l.name, l.version)
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: l.name}})
	if !l.leftovers {
		nothingLeft(t, l.name)
	}
}
