package applier_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// collectorPatience is how long the garbage collector may take to let go of content. It
// looks for kinds that are new every half minute.
const collectorPatience = 2 * time.Minute

// takeOwnerOff does to an object what the garbage collector does when an extension is
// deleted without its content.
func (f *fixture) takeOwnerOff(t *testing.T, name string) {
	t.Helper()
	free(t, f.live(t, name))
}

// allRecords reads the release records of the fixture, chunks too.
func (f *fixture) allRecords(t *testing.T) []corev1.Secret {
	t.Helper()
	list := &corev1.SecretList{}
	if err := admin.List(t.Context(), list, client.InNamespace(systemNamespace), client.MatchingLabels{"owner": "operator-controller"}); err != nil {
		t.Fatal(err)
	}
	var found []corev1.Secret
	for _, secret := range list.Items {
		if strings.HasPrefix(secret.Name, "sh.helm.release.v1."+f.owner.Name+".v") {
			found = append(found, secret)
		}
	}
	return found
}

// beginRemoval marks the extension of a fixture as being deleted, and leaves it there.
func (f *fixture) beginRemoval(t *testing.T) {
	t.Helper()
	extension := f.extension()
	hold := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":["test/hold"]}}`))
	if err := admin.Patch(t.Context(), extension, hold); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), extension); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { f.endRemoval(t) })
}

func (f *fixture) endRemoval(t *testing.T) {
	t.Helper()
	release := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
	if err := client.IgnoreNotFound(admin.Patch(context.Background(), f.extension(), release)); err != nil {
		t.Error(err)
	}
}

func (f *fixture) extension() *unstructured.Unstructured {
	extension := &unstructured.Unstructured{}
	extension.SetAPIVersion("olm.operatorframework.io/v1")
	extension.SetKind("ClusterExtension")
	extension.SetName(f.owner.Name)
	return extension
}

// letGo takes the owner off all Secrets and ConfigMaps of the extension, as the garbage
// collector does with --cascade=orphan.
func (f *fixture) letGo(t *testing.T) {
	t.Helper()
	secrets, configMaps := &corev1.SecretList{}, &corev1.ConfigMapList{}
	if err := admin.List(t.Context(), secrets, client.InNamespace(systemNamespace)); err != nil {
		t.Fatal(err)
	}
	if err := admin.List(t.Context(), configMaps, client.InNamespace(f.owner.Namespace)); err != nil {
		t.Fatal(err)
	}
	var found []client.Object
	for i := range secrets.Items {
		found = append(found, &secrets.Items[i])
	}
	for i := range configMaps.Items {
		found = append(found, &configMaps.Items[i])
	}
	for _, owned := range found {
		if controllers(owned)[0] == f.owner.UID {
			free(t, owned)
		}
	}
}

// free takes the owner off an object.
func free(t *testing.T, owned client.Object) {
	t.Helper()
	patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"ownerReferences":null}}`))
	if err := admin.Patch(t.Context(), owned, patch); err != nil {
		t.Fatal(err)
	}
}

// replaceExtension makes another extension of the same name in a process that knows
// nothing of the first. The collector orphans only what it has heard of, and deletes what
// was written a moment before the extension went: what the first one leaves behind would
// depend on how busy the collector is.
func (f *fixture) replaceExtension(t *testing.T, change func(*object.Owner)) {
	t.Helper()
	f.letGo(t)
	if err := admin.Delete(t.Context(), f.extension(), client.PropagationPolicy(metav1.DeletePropagationOrphan)); err != nil {
		t.Fatal(err)
	}
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, collectorPatience, true, func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKey{Name: f.owner.Name}, f.extension())
		return apierrors.IsNotFound(err), client.IgnoreNotFound(err)
	})
	if err != nil {
		t.Fatal(err)
	}
	f.owner = newOwner(t, f.owner.Name, f.owner.Namespace)
	change(&f.owner)
	f.restart(t)
}

// controllers are the UIDs of whoever controls the objects, each once.
func controllers(objects ...metav1.Object) []types.UID {
	var found []types.UID
	for _, object := range objects {
		if controller := metav1.GetControllerOf(object); controller != nil {
			found = append(found, controller.UID)
		} else {
			found = append(found, "")
		}
	}
	return found
}

// TestAnotherExtensionOfTheSameName takes over what an earlier one has left behind if
// it is the same release, and never the owner of its time.
func TestAnotherExtensionOfTheSameName(t *testing.T) {
	t.Parallel()
	same := func(*object.Owner) {}
	named := func(image string) func(*object.Owner) { // of which nobody knows yet which package it is of
		return func(e *object.Owner) { e.Package, e.Image = "", image }
	}
	tests := map[string]struct {
		change    func(*object.Owner)
		installed string
		revisions []string // of all records after an upgrade
	}{
		"same release":    {change: same, installed: "1.1.0", revisions: []string{"1", "2", "3"}},
		"another package": {change: func(e *object.Owner) { e.Package = "q" }, revisions: []string{"1", "2", "3"}},
		"a named image":   {change: named("registry.test/p:v1.1.0"), installed: "1.1.0", revisions: []string{"1", "2", "3"}},
		"another image":   {change: named("registry.test/p:v1.0.0"), revisions: []string{"1", "2", "3"}},
		"no image":        {change: named(""), revisions: []string{"1", "2", "3"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "again-"+strings.ReplaceAll(name, " ", "-"))
			f.apply(t, "1.0.0", configMap("a", "1"), configMap("b", "1"))
			f.apply(t, "1.1.0", configMap("a", "1"), configMap("b", "1"))
			before := f.live(t, "a")
			f.replaceExtension(t, tc.change)

			if got := installed(f.observe(t)); got != tc.installed {
				t.Fatalf("installed is %q, want %q", got, tc.installed)
			}
			if tc.installed != "" {
				for _, secret := range f.allRecords(t) {
					if diff := cmp.Diff([]types.UID{f.owner.UID}, controllers(&secret)); diff != "" {
						t.Errorf("controllers of %s (-want +got):\n%s", secret.Name, diff)
					}
				}
				if _, err := f.applier.Repair(t.Context(), f.owner); err != nil {
					t.Fatal(err)
				}
				if diff := cmp.Diff([]types.UID{f.owner.UID, f.owner.UID}, controllers(f.live(t, "a"), f.live(t, "b"))); diff != "" {
					t.Errorf("controllers after a repair (-want +got):\n%s", diff)
				}
			}
			f.apply(t, "1.2.0", configMap("a", "2"))
			after := f.live(t, "a")
			if after.UID != before.UID || after.Data["key"] != "2" {
				t.Errorf("a = %+v, was %+v", after, before)
			}
			if diff := cmp.Diff([]types.UID{f.owner.UID}, controllers(after)); diff != "" {
				t.Errorf("controllers after an upgrade (-want +got):\n%s", diff)
			}
			var revisions []string
			for _, secret := range f.records(t) {
				revisions = append(revisions, secret.Labels["version"])
				isOurs := controllers(&secret)[0] == f.owner.UID
				if want := tc.installed != "" || secret.Labels["version"] == "3"; isOurs != want {
					t.Errorf("%s is ours: %t, want %t", secret.Name, isOurs, want)
				}
			}
			if diff := cmp.Diff(tc.revisions, revisions); diff != "" {
				t.Errorf("revisions (-want +got):\n%s", diff)
			}
			if kept := f.live(t, "b"); (kept == nil) != (tc.installed != "") {
				t.Errorf("b = %+v: it goes with the upgrade only if it was installed before", kept)
			}
		})
	}
}

// TestRecordsOfANamedImageAreAdoptedLate has a process know which package a named image is of
// that the one before did not: what was installed last stays installed.
func TestRecordsOfANamedImageAreAdoptedLate(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "adopted-late")
	for _, version := range []string{"1.0.0", "1.1.0"} {
		f.apply(t, version, configMap("a", version))
	}
	records := f.allRecords(t)
	if err := admin.Delete(t.Context(), &records[0]); err != nil {
		t.Fatal(err)
	}
	f.restart(t)
	f.replaceExtension(t, func(e *object.Owner) { e.Package, e.Image = "", "registry.test/other:v1" })
	f.apply(t, "0.9.0", configMap("a", "0.9.0"))
	f.owner.Package = "p"
	f.restart(t)
	if got := installed(f.observe(t)); got != "0.9.0" {
		t.Errorf("installed is %q", got)
	}
	for _, secret := range f.allRecords(t) {
		if diff := cmp.Diff([]types.UID{f.owner.UID}, controllers(&secret)); diff != "" {
			t.Errorf("controllers of %s (-want +got):\n%s", secret.Name, diff)
		}
	}
}

// TestTakingOverRecordsEndsInBetween deletes the extension that takes records over,
// after each of the writes: whatever of them is still there then is whole.
func TestTakingOverRecordsEndsInBetween(t *testing.T) {
	t.Parallel()
	for writes := range 2 { // of the record and its chunk
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, fmt.Sprintf("half-taken-%d", writes))
			f.applyInChunks(t, "1.0.0", 4_000)
			f.replaceExtension(t, func(*object.Owner) {})
			f.endTakingOver(t, writes)
			f.applyInChunks(t, "1.1.0", 4_100)
			checkChunks(t, f)
			if got := installed(f.observe(t)); got != "1.1.0" {
				t.Errorf("%q is installed", got)
			}
		})
	}
}

// TestTakingOverRecordsEndsAgainAndAgain leaves chunks of more than one revision without
// their index: they are swept, too.
func TestTakingOverRecordsEndsAgainAndAgain(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "taken-by-turns")
	f.applyInChunks(t, "1.0.0", 4_000)
	f.applyInChunks(t, "1.1.0", 4_100)
	f.applyInChunks(t, "1.2.0", 4_200)
	f.replaceExtension(t, func(*object.Owner) {})
	for range 2 {
		f.endTakingOver(t, 1)
	}
	f.applyInChunks(t, "1.3.0", 4_300)
	checkChunks(t, f)
}

// TestTakingOverRevisionsEndsInBetween has the last of what was taken over be any Secret of
// two revisions: chunks may stay of the second, and no index at all.
func TestTakingOverRevisionsEndsInBetween(t *testing.T) {
	t.Parallel()
	for writes := range 4 { // of two records with a chunk each
		t.Run(fmt.Sprint(writes), func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, fmt.Sprintf("two-half-taken-%d", writes))
			f.applyInChunks(t, "1.0.0", 4_000)
			f.applyInChunks(t, "1.1.0", 4_100)
			if found := len(f.allRecords(t)); found != 4 {
				t.Fatalf("%d Secrets, want 4", found)
			}
			f.replaceExtension(t, func(*object.Owner) {})
			f.endTakingOver(t, writes)
			f.applyInChunks(t, "1.2.0", 4_200)
			f.applyInChunks(t, "1.3.0", 4_300)
			checkChunks(t, f)
		})
	}
}

// TestTakingOverRecordsEndsAndTheIndexIsSlowToGo has the collector delete the index that
// was taken over only when the next extension of the name has looked at what there is.
func TestTakingOverRecordsEndsAndTheIndexIsSlowToGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "slow-to-go")
	f.applyInChunks(t, "1.0.0", 4_000)
	index := f.records(t)[0]
	hold := func(finalizers ...string) {
		t.Helper()
		patch := client.RawPatch(types.MergePatchType, []byte(fmt.Sprintf(`{"metadata": {"finalizers": [%s]}}`, strings.Join(finalizers, ", "))))
		if err := admin.Patch(t.Context(), &index, patch); err != nil {
			t.Fatal(err)
		}
	}
	hold(`"test.test/hold"`)
	f.replaceExtension(t, func(*object.Owner) {})
	f.endTakingOverOf(t, 1, func(secret *corev1.Secret) bool { return secret.DeletionTimestamp != nil })
	f.applyInChunks(t, "1.1.0", 4_100)
	hold()
	f.eventually(t, "the index is gone", func() bool {
		return !slices.ContainsFunc(f.allRecords(t), func(secret corev1.Secret) bool { return secret.UID == index.UID })
	})
	checkChunks(t, f)
}

// applyInChunks looks at what there is, and installs a revision whose record has chunks.
func (f *fixture) applyInChunks(t *testing.T, version string, noise int) {
	t.Helper()
	f.restartWithSmallChunks(t)
	f.observe(t)
	desired := f.desired(version, configMap("a", version))
	desired.Inputs = testkit.Noise(t, noise)
	f.applyDesired(t, desired)
}

// endTakingOver has a process die when it has taken over as many Secrets of the records,
// and the extension go with what belongs to it. Then there is another one of its name.
func (f *fixture) endTakingOver(t *testing.T, writes int) {
	t.Helper()
	f.endTakingOverOf(t, writes, func(*corev1.Secret) bool { return false })
}

// endTakingOverOf is endTakingOver where some of these Secrets may stay.
func (f *fixture) endTakingOverOf(t *testing.T, writes int, stays func(*corev1.Secret) bool) {
	t.Helper()
	var sent atomic.Int64
	f.requests.setStop(func(req *http.Request) error {
		if isWrite(req) && sent.Add(1) > int64(writes) {
			return errDied
		}
		return nil
	})
	if _, err := f.applier.Observe(t.Context(), f.owner); !errors.Is(err, errDied) {
		t.Fatalf("err = %v, want the process to die", err)
	}
	taken := f.owner.UID
	if err := admin.Delete(t.Context(), f.extension()); err != nil {
		t.Fatal(err)
	}
	f.eventually(t, "the garbage collector deletes what was taken over", func() bool {
		return !slices.ContainsFunc(f.allRecords(t), func(secret corev1.Secret) bool {
			return controllers(&secret)[0] == taken && !stays(&secret)
		})
	})
	f.owner = newOwner(t, f.owner.Name, f.owner.Namespace)
	f.restart(t)
}

// TestAnotherExtensionInAProcessThatSawTheFirstGo has a process list all records while
// they belong to an extension that is about to let go of them.
func TestAnotherExtensionInAProcessThatSawTheFirstGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "seen-going")
	f.apply(t, "1.0.0", configMap("a", "1"))
	f.restart(t)
	other := newOwner(t, "seen-going-other", f.owner.Namespace)
	if _, err := f.applier.Observe(t.Context(), other); err != nil { // lists the records of all
		t.Fatal(err)
	}
	process := f.applier
	f.replaceExtension(t, func(*object.Owner) {})
	process.Forget(f.owner.Name)
	f.applier = process
	if got := installed(f.observe(t)); got != "1.0.0" {
		t.Errorf("%q is installed, want what the first extension has left", got)
	}
}

// TestNothingIsWrittenForAnExtensionOnItsWayOut deletes the extension at each request
// of an operation.
func TestNothingIsWrittenForAnExtensionOnItsWayOut(t *testing.T) {
	t.Parallel()
	isContent := func(req *http.Request) bool { return strings.Contains(req.URL.Path, "/configmaps") }
	tests := map[string]func(req *http.Request) bool{
		"before it is read":     func(req *http.Request) bool { return isContent(req) && req.Method == http.MethodGet },
		"before it is asked":    func(req *http.Request) bool { return strings.Contains(req.URL.Path, "/clusterextensions") },
		"before it is repaired": func(req *http.Request) bool { return isContent(req) && isWrite(req) },
	}
	for name, isMoment := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, strings.ReplaceAll(name, " ", "-"))
			f.apply(t, "1.0.0", configMap("a", "1"))
			f.settle(t)
			f.takeOwnerOff(t, "a")
			f.waitForChange(t)
			var happened atomic.Bool
			f.requests.setStop(func(req *http.Request) error {
				if isMoment(req) && happened.CompareAndSwap(false, true) {
					f.beginRemoval(t)
					// The garbage collector takes owners off now: the object changes.
					touch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`))
					if err := admin.Patch(req.Context(), f.live(t, "a"), touch); err != nil {
						t.Error(err)
					}
				}
				return nil
			})
			_, err := f.applier.Repair(t.Context(), f.owner)
			if !errors.Is(err, object.ErrOwnerGone) || !happened.Load() {
				t.Errorf("err = %v, want %v; it happened: %t", err, object.ErrOwnerGone, happened.Load())
			}
			if diff := cmp.Diff([]types.UID{""}, controllers(f.live(t, "a"))); diff != "" {
				t.Errorf("controllers (-want +got):\n%s", diff)
			}
			f.requests.setStop(nil)
			if _, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", configMap("a", "2"))); !errors.Is(err, object.ErrOwnerGone) {
				t.Errorf("an upgrade fails with %v, want %v", err, object.ErrOwnerGone)
			}
			if live := f.live(t, "a"); live.Data["key"] != "1" {
				t.Errorf("a = %+v", live)
			}
		})
	}
}

// TestDroppedObjectsAreAskedForTogether: once for as many as are deleted at a time.
func TestDroppedObjectsAreAskedForTogether(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "dropped-together")
	before := make([]*unstructured.Unstructured, 20)
	for i := range before {
		before[i] = configMap(fmt.Sprintf("c-%d", i), "1")
	}
	f.apply(t, "1.0.0", before...)
	f.requests.take()
	f.apply(t, "1.1.0", before[0])
	asked := slices.DeleteFunc(f.requests.take(), func(line string) bool {
		return !strings.HasSuffix(line, "/clusterextensions/"+f.owner.Name)
	})
	if want := 1 + 2; len(asked) != want { // before the first write; 16 objects, and 3
		t.Errorf("the extension was asked for %d times, want %d", len(asked), want)
	}
	if f.live(t, "c-0") == nil || f.live(t, "c-1") != nil || f.live(t, "c-19") != nil {
		t.Error("other objects than those that were dropped are gone")
	}
}

// TestDroppedObjectsOfAnExtensionOnItsWayOut has an extension deleted when it was asked
// whether it stays, and before what the upgrade drops is deleted. Of this the garbage
// collector may have let go by then.
func TestDroppedObjectsOfAnExtensionOnItsWayOut(t *testing.T) {
	t.Parallel()
	for name, meanwhile := range map[string]func(*testing.T, *fixture){
		"let go of": func(t *testing.T, f *fixture) { t.Helper(); f.takeOwnerOff(t, "b") },
		"changed": func(t *testing.T, f *fixture) {
			t.Helper()
			touch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"annotations":{"touched":"yes"}}}`))
			if err := admin.Patch(t.Context(), f.live(t, "b"), touch); err != nil {
				t.Error(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "dropped-"+strings.ReplaceAll(name, " ", "-"))
			f.apply(t, "1.0.0", configMap("a", "1"), configMap("b", "1"))
			var happened atomic.Bool
			f.requests.setStop(func(req *http.Request) error {
				if req.Method == http.MethodDelete && happened.CompareAndSwap(false, true) {
					f.beginRemoval(t)
					meanwhile(t, f)
				}
				return nil
			})
			_, err := f.applier.Apply(t.Context(), f.owner, f.desired("1.1.0", configMap("a", "2")))
			if !errors.Is(err, object.ErrOwnerGone) || !happened.Load() {
				t.Errorf("err = %v, want %v; it happened: %t", err, object.ErrOwnerGone, happened.Load())
			}
			if f.live(t, "b") == nil {
				t.Error("it is gone, and may be what is to stay")
			}
		})
	}
}

// TestWhatIsChangedBetweenReadAndWrite has somebody take the owner off an object after an
// upgrade has read it, and before it writes it: that is seen.
func TestWhatIsChangedBetweenReadAndWrite(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "changed-between")
	f.apply(t, "1.0.0", configMap("a", "1"))
	f.restart(t)
	f.during(func() { f.takeOwnerOff(t, "a") })
	f.apply(t, "1.1.0", configMap("a", "2"))
	live := f.live(t, "a")
	if diff := cmp.Diff([]types.UID{f.owner.UID}, controllers(live)); diff != "" || live.Data["key"] != "2" {
		t.Errorf("a = %+v; controllers (-want +got):\n%s", live, diff)
	}
}

// TestOrphan takes the owner off what the garbage collector has missed, and writes
// nothing to what is free already.
func TestOrphan(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "let-go")
	f.apply(t, "1.0.0", configMap("a", "1"), configMap("b", "1"))
	f.apply(t, "1.1.0", configMap("a", "1"), configMap("b", "1"))
	f.takeOwnerOff(t, "b")
	f.beginRemoval(t)
	f.restart(t)
	ctx, lines := logged(t)
	if err := f.applier.Orphan(ctx, f.owner); err != nil {
		t.Fatal(err)
	}
	if got := lines(); len(got) != 1 || !strings.Contains(got[0], `"took the owner off"`) || !strings.Contains(got[0], `"name"="a"`) {
		t.Errorf("the log has %q", got)
	}
	if diff := cmp.Diff([]types.UID{"", ""}, controllers(f.live(t, "a"), f.live(t, "b"))); diff != "" {
		t.Errorf("controllers (-want +got):\n%s", diff)
	}
	for _, secret := range f.allRecords(t) {
		if diff := cmp.Diff([]types.UID{""}, controllers(&secret)); diff != "" {
			t.Errorf("controllers of %s (-want +got):\n%s", secret.Name, diff)
		}
	}
	f.requests.take()
	f.requests.setStop(func(req *http.Request) error {
		if isWrite(req) {
			t.Errorf("%s %s, and there is nothing left to let go of", req.Method, req.URL.Path)
		}
		return nil
	})
	if err := f.applier.Orphan(t.Context(), f.owner); err != nil {
		t.Fatal(err)
	}
}

// TestOwnerThatSomebodyTakesOff: it is put back, which is a repair. Only who looks at an
// extension for the first time takes objects over.
func TestOwnerThatSomebodyTakesOff(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "disowned")
	f.apply(t, "1.0.0", configMap("a", "1"))
	f.settle(t)
	live := f.live(t, "a")
	live.OwnerReferences = nil
	if err := admin.Update(t.Context(), live, client.FieldOwner("rival")); err != nil {
		t.Fatal(err)
	}
	f.waitForChange(t)
	result := f.repair(t)
	if repaired := result.Repaired(); len(repaired) != 1 || repaired[0].Name != "a" || result.TakenOver() != 0 {
		t.Errorf("%v was repaired and %d objects taken over, want a to be repaired", repaired, result.TakenOver())
	}
}
