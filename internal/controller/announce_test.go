package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/google/go-cmp/cmp"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/client/interceptor"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/requeue"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/turn"
)

const (
	saidDone     = "Progressing True Succeeded, Ready True Succeeded"
	saidUnderway = "Progressing True RollingOut, Ready Unknown RollingOut, Reconciling"
)

// notice has the status while something goes on.
func (w *world) notice(t *testing.T) map[string]string {
	t.Helper()
	seen := map[string]string{}
	w.during = func(stage string) { seen[stage] = inShort(&w.extension(t).Status) }
	return seen
}

// edited is another generation of the spec.
func (w *world) edit(t *testing.T) {
	t.Helper()
	ext := w.extension(t)
	ext.Generation++
	if err := w.client.Update(t.Context(), ext); err != nil {
		t.Fatal(err)
	}
}

// observed sets observedGeneration to the generation, so that missing prerequisites are reported at once.
func (w *world) observed(t *testing.T) {
	t.Helper()
	ext := w.extension(t)
	ext.Status.ObservedGeneration = ext.Generation
	if err := w.client.Status().Update(t.Context(), ext); err != nil {
		t.Fatal(err)
	}
}

func TestInstallIsAnnounced(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	seen := w.notice(t)
	w.mustReconcile(t)
	if diff := cmp.Diff(map[string]string{"fetch": "", "check": "", "apply": saidUnderway}, seen); diff != "" {
		t.Errorf("status while it goes on (-want +got):\n%s", diff)
	}
	if got := inShort(&w.extension(t).Status); got != saidDone {
		t.Errorf("status at the end: %s", got)
	}
	if diff := cmp.Diff([]string{"patch status", "patch status"}, w.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if !w.confirmed {
		t.Error("what was written does not confirm that the extension is to stay")
	}
	want := []string{
		`Normal Succeeded: "p.v1.0.0" version "1.0.0" is installed, from catalog "c"`,
	}
	if diff := cmp.Diff(want, w.events); diff != "" {
		t.Errorf("told (-want +got):\n%s", diff)
	}
}

// TestFirstStatus is whole: those who wait for any condition find it.
func TestFirstStatus(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	var first *ocv1.ClusterExtension
	w.during = func(stage string) {
		if stage == "apply" {
			first = w.extension(t)
		}
	}
	w.mustReconcile(t)
	if first.Status.ObservedGeneration != first.Generation {
		t.Errorf("generation %d is observed", first.Status.ObservedGeneration)
	}
	for kind, want := range map[string]string{
		ocv1.TypeInstalled:         "False Absent: No bundle installed",
		ocv1.TypeAvailable:         "Unknown Absent: no bundle installed yet",
		ocv1.TypePackageDeprecated: "False NotDeprecated: package not deprecated",
		ocv1.TypeBundleDeprecated:  "Unknown Absent: no bundle installed yet",
		ocv1.TypeReconciling:       brief(&first.Status, ocv1.TypeProgressing),
		ocv1.TypeReady:             strings.Replace(brief(&first.Status, ocv1.TypeProgressing), "True", "Unknown", 1),
		ocv1.TypeStalled:           "",
	} {
		if got := brief(&first.Status, kind); got != want {
			t.Errorf("%s is %q, want %q", kind, got, want)
		}
	}
}

// TestUpgradesAreAnnounced has a catalog, or an edit, lead to another version.
func TestUpgradesAreAnnounced(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		change func(*testing.T, *world)
		seen   map[string]string
		writes int
		err    bool
	}{
		"by a catalog": {
			reason: "until something is written, the old version is what is wanted",
			change: func(_ *testing.T, w *world) { w.catalog["p"] = offering("1.0.0", "1.1.0").Package },
			seen:   map[string]string{"fetch": saidDone, "check": saidDone, "apply": saidUnderway},
			writes: 2,
		},
		"by an edit": {
			reason: "the status says itself that it is about an older spec",
			change: func(t *testing.T, w *world) {
				t.Helper()
				w.catalog["p"] = offering("1.0.0", "1.1.0").Package
				w.edit(t)
			},
			seen:   map[string]string{"fetch": saidDone, "check": saidDone, "apply": saidUnderway},
			writes: 2,
		},
		"edit that changes nothing": {
			change: func(t *testing.T, w *world) { t.Helper(); w.edit(t) },
			seen:   map[string]string{},
			writes: 1,
		},
		"refused before the first write": {
			reason: "it is not under way",
			change: func(_ *testing.T, w *world) {
				w.catalog["p"], w.applyErr = offering("1.0.0", "1.1.0").Package, errors.New("boom")
			},
			seen:   map[string]string{"fetch": saidDone},
			writes: 1,
			err:    true,
		},
		"pending": {
			reason: "what is installed is what is wanted",
			change: func(_ *testing.T, w *world) {
				w.catalog["p"] = offering("1.0.0", "1.1.0").Package
				w.applyErr = &preflight.ApprovalError{Version: "1.1.0", Gains: []permission.Gain{{Subject: "s", Role: "r"}}}
			},
			seen:   map[string]string{"fetch": saidDone},
			writes: 1,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			w.mustReconcile(t)
			tc.change(t, w)
			w.writes, w.confirmed = nil, false
			seen := w.notice(t)
			if _, err := w.reconcile(t); (err != nil) != tc.err {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.seen, seen); diff != "" {
				t.Errorf("status while it goes on (-want +got): %s\n%s", tc.reason, diff)
			}
			if len(w.writes) != tc.writes {
				t.Errorf("writes = %v, want %d", w.writes, tc.writes)
			}
			if _, applied := tc.seen["apply"]; w.confirmed != applied {
				t.Errorf("what was written confirms that the extension is to stay: %t", w.confirmed)
			}
			w.writes = nil
			if _, err := w.reconcile(t); (err != nil) != tc.err {
				t.Fatal(err)
			}
			if len(w.writes) > 0 {
				t.Errorf("a second pass over the same world wrote %v", w.writes)
			}
		})
	}
}

// TestSlowStartIsTold: an edit that comes to no write for long is told of beside the pass,
// once.
func TestSlowStartIsTold(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.mustReconcile(t)
	w.catalog["p"] = offering("1.0.0", "1.1.0").Package
	w.edit(t)
	w.writes = nil
	var during, after string
	w.during = func(stage string) {
		switch stage {
		case "check":
			told := make(chan struct{})
			go func() {
				defer close(told)
				w.due()
			}()
			<-told
			during = brief(&w.extension(t).Status, ocv1.TypeProgressing)
		case "apply":
			after = brief(&w.extension(t).Status, ocv1.TypeProgressing)
		}
	}
	w.mustReconcile(t)
	want := `True RollingOut: upgrading from "p.v1.0.0" version "1.0.0" to "p.v1.1.0" version "1.1.0": ` +
		"checking what image registry.test/p:v1.1.0 changes, then applying it"
	if during != want || after != want {
		t.Errorf("told %q, then %q, want %q", during, after, want)
	}
	if w.confirmed {
		t.Error("that the extension is to stay was confirmed by a write beside the pass")
	}
	if diff := cmp.Diff("Normal "+strings.TrimPrefix(want, "True "), w.events[1]); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	w.due() // too late
	if diff := cmp.Diff([]string{"patch status", "patch status"}, w.writes); diff != "" {
		t.Errorf("writes (-want +got):\n%s", diff)
	}
	if got := inShort(&w.extension(t).Status); got != saidDone {
		t.Errorf("status at the end: %s", got)
	}
}

// TestAnotherExtensionIsNotConfirmed: one that was deleted and made again answers under the
// same name.
func TestAnotherExtensionIsNotConfirmed(t *testing.T) {
	t.Parallel()
	now := metav1.Now()
	for name, answer := range map[string]func(*ocv1.ClusterExtension){
		"made again":    func(ext *ocv1.ClusterExtension) { ext.UID = "another" },
		"being deleted": func(ext *ocv1.ClusterExtension) { ext.DeletionTimestamp = &now },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			w.mustReconcile(t)
			w.catalog["p"] = offering("1.0.0", "1.1.0").Package
			w.reconciler.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // what newWorld made
				SubResourcePatch: func(_ context.Context, _ client.Client, _ string, object client.Object, _ client.Patch, _ ...client.SubResourcePatchOption) error {
					answer(object.(*ocv1.ClusterExtension)) //nolint:forcetypeassert // there is no other status
					return nil
				},
			})
			w.mustReconcile(t)
			if w.confirmed {
				t.Error("it was taken for the extension of the pass")
			}
		})
	}
}

// TestWhatCannotBeAnnouncedIsNotDone has an extension change while a pass is on its
// way: what the pass knows of it is not true any more.
func TestWhatCannotBeAnnouncedIsNotDone(t *testing.T) {
	t.Parallel()
	errConflict := apierrors.NewConflict(schema.GroupResource{Resource: "clusterextensions"}, "x", errors.New("changed"))
	for name, installed := range map[string]bool{"install": false, "upgrade": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			if installed {
				w.mustReconcile(t)
				w.catalog["p"] = offering("1.0.0", "1.1.0").Package
			}
			w.take()
			w.reconciler.Client = interceptor.NewClient(w.client.(client.WithWatch), interceptor.Funcs{ //nolint:forcetypeassert // what newWorld made
				SubResourcePatch: func(context.Context, client.Client, string, client.Object, client.Patch, ...client.SubResourcePatchOption) error {
					return errConflict
				},
			})
			if _, err := w.reconcile(t); !apierrors.IsConflict(err) {
				t.Errorf("err = %v, want the conflict", err)
			}
			if did := w.take(); slices.Contains(did, "write") || slices.Contains(did, "repair") {
				t.Errorf("content was written: %v", did)
			}
		})
	}
}

// TestSlowPulls have a registry that takes its time. Passes do not wait for it.
func TestSlowPulls(t *testing.T) {
	t.Parallel()
	const (
		install = `Normal Pulling: installing "p.v1.0.0" version "1.0.0": pulling image registry.test/p:v1.0.0 takes longer than 5s`
		upgrade = `Normal Pulling: upgrading from "p.v1.0.0" version "1.0.0" to "p.v1.1.0" version "1.1.0": pulling image registry.test/p:v1.1.0 takes longer than 5s`
	)
	tests := map[string]struct {
		installed bool
		edited    bool
		takes     time.Duration
		want      string // the one event that tells of it
	}{
		"install":              {takes: time.Minute, want: install},
		"upgrade by a catalog": {installed: true, takes: time.Minute, want: upgrade},
		"upgrade by an edit":   {installed: true, edited: true, takes: time.Minute, want: upgrade},
		"quick":                {installed: true, takes: time.Second},
		"quick edit":           {installed: true, edited: true, takes: time.Second},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			if tc.installed {
				w.mustReconcile(t)
				w.catalog["p"] = offering("1.0.0", "1.1.0").Package
			}
			if tc.edited {
				w.edit(t)
			}
			w.take()
			w.writes, w.fetching = nil, true
			for began := w.passed; w.passed < began+tc.takes; {
				result, err := w.reconcile(t)
				if !errors.Is(err, requeue.ErrUnderway) {
					t.Fatalf("err = %v, want that the pass is under way", err)
				}
				if did := w.take(); len(did) > 0 {
					t.Errorf("while it was pulled: %v", did)
				}
				if result.RequeueAfter == 0 { // it is woken
					break
				}
				w.passed += min(result.RequeueAfter, tc.takes)
			}
			if underway := inShort(&w.extension(t).Status) == saidUnderway; underway != (tc.want != "") {
				t.Errorf("while it was pulled: %s", inShort(&w.extension(t).Status))
			}
			if w.abandoned > 0 {
				t.Error("what is waited for was abandoned")
			}
			w.fetching = false
			w.mustReconcile(t)
			told := slices.DeleteFunc(w.events, func(text string) bool { return !strings.Contains(text, "takes longer") })
			if strings.Join(told, "\n") != tc.want {
				t.Errorf("told %q, want %q", told, tc.want)
			}
			if len(w.writes) != 2 {
				t.Errorf("writes = %v", w.writes)
			}
			if got := inShort(&w.extension(t).Status); got != saidDone {
				t.Errorf("status at the end: %s", got)
			}
		})
	}
}

// TestPullsThatNobodyWaitsFor are abandoned when the way has become another one.
func TestPullsThatNobodyWaitsFor(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		change    func(*testing.T, *world)
		abandoned int
	}{
		"still waited for": {change: func(*testing.T, *world) {}},
		"deleted": {change: func(t *testing.T, w *world) {
			t.Helper()
			if err := w.client.Delete(t.Context(), w.extension(t)); err != nil {
				t.Fatal(err)
			}
		}, abandoned: 1},
		"no way any more": {change: func(_ *testing.T, w *world) { w.catalog["p"] = nil }, abandoned: 1},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			w.fetching = true
			for range 2 {
				if _, err := w.reconcile(t); !errors.Is(err, requeue.ErrUnderway) {
					t.Fatalf("err = %v, want that the pass is under way", err)
				}
			}
			tc.change(t, w)
			if _, err := w.reconcile(t); errors.Is(err, requeue.ErrUnderway) != (tc.abandoned == 0) {
				t.Errorf("err = %v", err)
			}
			if w.abandoned != tc.abandoned {
				t.Errorf("%d pulls were abandoned, want %d", w.abandoned, tc.abandoned)
			}
		})
	}
}

// TestWaitsGoOnGrowing: that a pull is begun again does not mean that it succeeds.
func TestWaitsGoOnGrowing(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	quietly := requeue.Quietly(w.reconciler, w.reconciler.backoff)
	var waits []time.Duration
	for range 4 {
		w.fetching = true
		if _, err := quietly.Reconcile(t.Context(), requestFor("x")); err != nil {
			t.Fatal(err)
		}
		w.fetching, w.fetchErr = false, errors.New("too slow")
		w.reconciler.holds.ask("x")
		result, err := quietly.Reconcile(t.Context(), requestFor("x"))
		if err != nil {
			t.Fatal(err)
		}
		waits = append(waits, result.RequeueAfter)
		w.passed += result.RequeueAfter
	}
	want := []time.Duration{minBackoff, 2 * minBackoff, 4 * minBackoff, 8 * minBackoff}
	if diff := cmp.Diff(want, waits); diff != "" {
		t.Errorf("waits between tries (-want +got):\n%s", diff)
	}
}

// TestLargeExtensionsTakeTurns: who waits says so, keeps its image, and goes on when it is
// woken.
func TestLargeExtensionsTakeTurns(t *testing.T) {
	t.Parallel()
	text := strings.Repeat("a", largeBundle)
	var many strings.Builder
	for i := range largeObjects {
		fmt.Fprintf(&many, "---\napiVersion: v1\nkind: ConfigMap\nmetadata: {name: object-%d}\n", i)
	}
	tests := map[string]string{
		"many bytes":   "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\ndata: {a: " + text + "}\n",
		"many values":  "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: large}\nvalues: [" + strings.Repeat("1,", largeValues) + "]\n",
		"many objects": many.String(),
	}
	for name, content := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			files := testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()
			files["manifests/large.yaml"] = &fstest.MapFile{Data: []byte(content)}
			w.files = files
			other, end := w.reconciler.Turns.Begin(t.Context(), "other", "others")
			if err := turn.Take(other); err != nil {
				t.Fatal(err)
			}
			w.take()
			for range 2 {
				result, err := w.reconcile(t)
				if !errors.Is(err, requeue.ErrUnderway) || result.RequeueAfter != 0 {
					t.Fatalf("got %v, %v, want that it waits to be woken", result, err)
				}
			}
			if did := w.take(); len(did) != 1 || !strings.HasPrefix(did[0], "fetch ") {
				t.Errorf("while it waited: %v", did)
			}
			if kept := w.reconciler.keptFiles.Load(); kept != 1 {
				t.Errorf("the files of %d are at hand, want 1", kept)
			}
			progressing := meta.FindStatusCondition(w.extension(t).Status.Conditions, ocv1.TypeProgressing)
			if progressing == nil || !strings.Contains(progressing.Message, "waits for its turn") {
				t.Errorf("while it waited: %+v", progressing)
			}
			end()
			w.during = func(stage string) {
				progressing := meta.FindStatusCondition(w.extension(t).Status.Conditions, ocv1.TypeProgressing)
				if stage == "apply" && strings.Contains(progressing.Message, "waits for its turn") {
					t.Errorf("while it is applied: %s", progressing.Message)
				}
			}
			if woken := <-w.turns; woken != w.extension(t).Name {
				t.Errorf("woken: %s", woken)
			}
			w.mustReconcile(t)
			if did := strings.Join(w.take(), ", "); !strings.Contains(did, "apply 1.0.0") || !strings.HasSuffix(did, "close") || strings.Contains(did, "fetch") {
				t.Errorf("then: %s", did)
			}
			if kept := w.reconciler.keptFiles.Load(); kept != 0 {
				t.Errorf("the files of %d are at hand at the end", kept)
			}
			if got := inShort(&w.extension(t).Status); got != saidDone {
				t.Errorf("status at the end: %s", got)
			}
			isWait := func(event string) bool {
				return strings.HasPrefix(event, "Normal RollingOut: ") && strings.Contains(event, "waits for its turn")
			}
			if len(w.events) != 2 || !isWait(w.events[0]) {
				t.Errorf("told %q, want that it waited, and the end", w.events)
			}
		})
	}
}

// recordsWait is a world in which it takes a turn to look at the records.
type recordsWait struct{ *world }

func (recordsWait) Observe(context.Context, object.Owner) (installation.State, error) {
	return installation.State{}, turn.ErrWait
}

// TestWhoWaitsToBeLookedAtSaysSo, once, where no status was about the spec: it could be
// taken for one that nobody looks after.
func TestWhoWaitsToBeLookedAtSaysSo(t *testing.T) {
	t.Parallel()
	for name, begin := range map[string]func(w *world){
		"its records": func(w *world) { w.reconciler.Releases = recordsWait{w} },
		"its content": func(w *world) { w.repairErr = turn.ErrWait },
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			w.mustReconcile(t)
			ext := w.extension(t)
			ext.Status = ocv1.ClusterExtensionStatus{} // as of one that was restored
			if err := w.client.Status().Update(t.Context(), ext); err != nil {
				t.Fatal(err)
			}
			begin(w)
			for range 2 {
				w.writes = nil
				if result, err := w.reconcile(t); !errors.Is(err, requeue.ErrUnderway) || result.RequeueAfter != 0 {
					t.Fatalf("got %v, %v, want that it waits to be woken", result, err)
				}
			}
			if len(w.writes) > 0 {
				t.Errorf("it was told again: %v", w.writes)
			}
			status := w.extension(t).Status
			want := "Unknown RollingOut: waits for its turn to look at what is installed: it is large or slow, and so are others that are worked on"
			if diff := cmp.Diff(want, brief(&status, ocv1.TypeReady)); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
			if !meta.IsStatusConditionTrue(status.Conditions, ocv1.TypeReconciling) || status.ObservedGeneration != w.extension(t).Generation {
				t.Errorf("status: %+v", status)
			}
			w.reconciler.Releases, w.repairErr = w, nil
			w.mustReconcile(t)
			if got := inShort(&w.extension(t).Status); got != saidDone {
				t.Errorf("status at the end: %s", got)
			}
		})
	}
}

// TestWhoWaitsForItsTurnIsWoken and makes no pass on its own, however long that takes, also
// when its files are not kept.
func TestWhoWaitsForItsTurnIsWoken(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	files := testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()
	files["manifests/large.yaml"] = &fstest.MapFile{Data: make([]byte, largeBundle)}
	w.files = files
	w.reconciler.keptFiles.Store(maxKeptFiles)
	other, end := w.reconciler.Turns.Begin(t.Context(), "other", "others")
	defer end()
	if err := turn.Take(other); err != nil {
		t.Fatal(err)
	}
	for range 3 {
		if result, err := w.reconcile(t); !errors.Is(err, requeue.ErrUnderway) || result.RequeueAfter != 0 {
			t.Errorf("after %s: got %v, %v, want that it waits to be woken", w.passed, result, err)
		}
		w.passed += slow
	}
	if took := secondsOf(t, w.registry, StageFetch); took != 0 {
		t.Errorf("fetching took %g seconds with the time of waiting", took)
	}
}

// TestFilesOfWhoWaitsAreKeptInPart: they take room in the cache that others need.
func TestFilesOfWhoWaitsAreKeptInPart(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	closed := 0
	files := Files{Close: func() { closed++ }}
	for i := range maxKeptFiles + 3 {
		w.reconciler.done(fmt.Sprintf("x%d", i), BundleImage{}, files, true)
	}
	if closed != 3 {
		t.Errorf("%d are closed, want 3", closed)
	}
	w.reconciler.abandonPull("x0")
	w.reconciler.done("another", BundleImage{}, files, true)
	if closed != 4 {
		t.Errorf("%d are closed, want 4: there is room for one again", closed)
	}
}
