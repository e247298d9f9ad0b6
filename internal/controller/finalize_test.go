package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/requeue"
	"github.com/clusterextensions/operator-controller/internal/turn"
)

func TestDeletionLetsGo(t *testing.T) {
	t.Parallel()
	const (
		theirs     = "example.com/theirs"
		foreground = metav1.FinalizerDeleteDependents
		orphan     = metav1.FinalizerOrphanDependents
		counted    = "Warning CustomResources: deleted with 3 custom resources: 3 of widgets.p; " +
			"those with finalizers stay, and hang, unless the operator removes them before it goes"
		waits = "being deleted, which waits until "
		gone  = "Normal Removed: let go of; the cluster deletes the 2 objects that it has installed"
	)
	with := func(names ...string) []string { return append(names, finalizers...) }
	tests := map[string]struct {
		reason      string
		finalizers  []string
		age         time.Duration
		remaining   []string
		deletionErr error
		orphaned    bool
		recordsErr  error

		left    []string
		writes  []string
		did     []string
		told    []string
		ready   string // with its message; empty for no status
		is, was string // the reasons of Ready, if not Terminating and none
		requeue time.Duration
	}{
		"only ours": {
			finalizers: finalizers, writes: []string{"patch"}, did: []string{"begin deletion", "forget x"}, told: []string{counted, gone},
		},
		"theirs too": {
			finalizers: with(theirs), left: []string{theirs}, writes: []string{"patch status", "patch"},
			did:   []string{"begin deletion", "forget x"},
			ready: waits + "its finalizers example.com/theirs are removed by whoever has set them",
			told:  []string{counted, "Normal Terminating: " + waits + "its finalizers example.com/theirs are removed by whoever has set them", gone},
		},
		"only theirs": {
			finalizers: []string{theirs}, left: []string{theirs}, writes: []string{"patch status"},
			ready: waits + "its finalizers example.com/theirs are removed by whoever has set them",
			told:  []string{"Normal Terminating: " + waits + "its finalizers example.com/theirs are removed by whoever has set them"},
		},
		"orphaned": {
			reason:     "what is to stay is looked at when the garbage collector is done with it",
			finalizers: with(orphan), left: with(orphan), writes: []string{"patch status"}, did: []string{"forget x"},
			ready: waits + "all that it has installed, which stays, belongs to it no longer",
			told:  []string{"Normal Orphaning: " + waits + "all that it has installed, which stays, belongs to it no longer"},
			is:    ocv1.ReasonOrphaning,
		},
		"orphaned, by a process that has only just started": {
			reason:     "the one before has told it in the status",
			finalizers: finalizers, writes: []string{"patch"}, did: []string{"forget x", "orphan"}, was: ocv1.ReasonOrphaning,
			told: []string{"Normal Removed: let go of; all that it has installed is to stay"},
		},
		"orphaned, by a process that never saw it": {
			reason:     "the one before ended before it could tell, but the records belong to nobody",
			finalizers: finalizers, writes: []string{"patch"}, did: []string{"forget x", "orphan"}, orphaned: true,
			told: []string{"Normal Removed: let go of; all that it has installed is to stay"},
		},
		"without an answer whether it is orphaned": {
			reason:     "nothing goes while that is not known",
			finalizers: finalizers, left: finalizers, writes: []string{"patch status"}, orphaned: true, recordsErr: errors.New("boom"),
			ready:   waits + "it is known whether all that it has installed is to stay: boom",
			told:    []string{"Normal Terminating: " + waits + "it is known whether all that it has installed is to stay: boom"},
			requeue: remainingInterval,
		},
		"in the foreground, first": {
			finalizers: with(foreground), age: time.Second, left: []string{foreground},
			writes: []string{"patch status", "patch"}, did: []string{"begin deletion", "forget x"},
			ready: waits + "all that it has installed is gone", requeue: 4 * time.Second,
			told: []string{counted, "Normal Terminating: " + waits + "all that it has installed is gone", gone},
		},
		"in the foreground, later": {
			finalizers: []string{foreground}, age: 5 * time.Second, left: []string{foreground},
			remaining: []string{`CustomResourceDefinition "widgets.p"`, `Secret "s"`},
			writes:    []string{"patch status"}, did: []string{"remaining"},
			ready: waits + `all that it has installed is gone; 2 left: CustomResourceDefinition "widgets.p", Secret "s"`,
			told: []string{
				"Normal Terminating: " + waits + `all that it has installed is gone; 2 left: CustomResourceDefinition "widgets.p", Secret "s"`,
			},
			requeue: remainingInterval,
		},
		"in the foreground, unknown": {
			finalizers: []string{foreground, theirs}, age: time.Hour, left: []string{foreground, theirs}, deletionErr: errors.New("boom"),
			writes: []string{"patch status"}, did: []string{"remaining"},
			ready: waits + "its finalizers example.com/theirs are removed by whoever has set them, " +
				"and until all that it has installed is gone, of which it is not known what is left: boom",
			told: []string{
				"Normal Terminating: " + waits + "its finalizers example.com/theirs are removed by whoever has set them, " +
					"and until all that it has installed is gone, of which it is not known what is left: boom",
			},
			requeue: remainingInterval,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := sampleExtension()
			ext.Finalizers = tc.finalizers
			if tc.was != "" {
				ext.Status.Conditions = []metav1.Condition{{Type: ocv1.TypeReady, Status: metav1.ConditionFalse, Reason: tc.was}}
			}
			w := newWorld(t)
			ext.DeletionTimestamp = &metav1.Time{Time: w.reconciler.Now().Add(-tc.age)}
			w = newWorld(t, ext)
			w.reconciler.concluded.Store(ext.Name, ext.Status.DeepCopy()) // by the pass before the deletion
			w.customResources = []installation.CustomResources{{Definition: "widgets.p", Count: 3}}
			w.remaining, w.deletionErr = tc.remaining, tc.deletionErr
			w.orphaned, w.recordsErr = tc.orphaned, tc.recordsErr
			result, err := w.reconcile(t)
			if err != nil {
				t.Fatal(err)
			}
			if result.RequeueAfter != tc.requeue {
				t.Errorf("looked at again after %s, want %s", result.RequeueAfter, tc.requeue)
			}
			got := &ocv1.ClusterExtension{}
			err = w.client.Get(t.Context(), client.ObjectKey{Name: "x"}, got)
			if apierrors.IsNotFound(err) != (len(tc.left) == 0) || !slices.Equal(got.Finalizers, tc.left) {
				t.Errorf("finalizers left = %v (%v), want %v: %s", got.Finalizers, err, tc.left, tc.reason)
			}
			if diff := cmp.Diff(tc.writes, w.writes); diff != "" {
				t.Errorf("writes (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.did, w.did); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
			if diff := cmp.Diff(tc.told, w.events); diff != "" {
				t.Errorf("told (-want +got):\n%s", diff)
			}
			if len(tc.left) == 0 {
				return
			}
			reason := ocv1.ReasonTerminating
			if tc.is != "" {
				reason = tc.is
			}
			if diff := cmp.Diff("False "+reason+": "+tc.ready, brief(&got.Status, ocv1.TypeReady)); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
			if status := kstatusOf(t, got); status != kstatus.TerminatingStatus {
				t.Errorf("kstatus says %s", status)
			}
			if w.reconciler.statusDiffers(event.UpdateEvent{ObjectOld: ext, ObjectNew: got}) {
				t.Error("our own write of the status wakes the extension")
			}
			w.writes, w.events = nil, nil
			if _, err := w.reconcile(t); err != nil || len(w.writes) > 0 || len(w.events) > 0 {
				t.Errorf("a second pass wrote %v and told %v (%v)", w.writes, w.events, err)
			}
		})
	}
}

// TestContentThatCannotBeLetGoIsTold has the garbage collector done with content that
// is to stay, and a ServiceAccount that may not read it.
func TestContentThatCannotBeLetGoIsTold(t *testing.T) {
	t.Parallel()
	ext := sampleExtension()
	ext.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
	w := newWorld(t, ext)
	w.letGoErr = errors.New("boom")
	orphaned := ext.DeepCopy()
	orphaned.Finalizers = append(orphaned.Finalizers, metav1.FinalizerOrphanDependents)
	w.reconciler.removals.note(orphaned)
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	want := "False Orphaning: being deleted, which waits until all that it has installed, which stays, belongs to it no longer: boom"
	if diff := cmp.Diff(want, brief(&w.extension(t).Status, ocv1.TypeReady)); diff != "" {
		t.Errorf("Ready (-want +got):\n%s", diff)
	}
	w.letGoErr, w.did = nil, nil
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff([]string{"forget x", "orphan"}, w.did); diff != "" {
		t.Errorf("done (-want +got): nothing goes, so nothing is counted\n%s", diff)
	}
}

// TestLargeExtensionsTakeTurnsToGo: one that waits is there, says so, and goes when it is
// woken.
func TestLargeExtensionsTakeTurnsToGo(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		orphaned bool
		waits    func(w *world, err error)
		did      []string // at last
	}{
		"before it is known what goes": {
			waits: func(w *world, err error) { w.deletionErr = err },
			did:   []string{"begin deletion", "forget x"},
		},
		"before what stays is orphaned": {
			orphaned: true,
			waits:    func(w *world, err error) { w.letGoErr = err },
			did:      []string{"forget x", "orphan"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := sampleExtension()
			ext.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
			w := newWorld(t, ext)
			if tc.orphaned {
				orphaned := ext.DeepCopy()
				orphaned.Finalizers = append(orphaned.Finalizers, metav1.FinalizerOrphanDependents)
				w.reconciler.removals.note(orphaned)
			}
			tc.waits(w, turn.ErrWait)
			for range 2 {
				if result, err := w.reconcile(t); !errors.Is(err, requeue.ErrUnderway) || result.RequeueAfter != 0 {
					t.Fatalf("got %v, %v, want that it waits to be woken", result, err)
				}
			}
			want := "False Terminating: being deleted, which waits for its turn: it is large or slow, and so are others that are worked on"
			if diff := cmp.Diff(want, brief(&w.extension(t).Status, ocv1.TypeReady)); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
			tc.waits(w, nil)
			w.did = nil
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.did, w.did); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(ext), ext); !apierrors.IsNotFound(err) {
				t.Errorf("it is still there: %v", err)
			}
		})
	}
}

func TestCustomResourcesThatGoAreTold(t *testing.T) {
	t.Parallel()
	forbidden := apierrors.NewForbidden(schema.GroupResource{Resource: "widgets"}, "", errors.New("no"))
	tests := map[string]struct {
		counts []installation.CustomResources
		err    error
		want   *transition
	}{
		"no definitions": {},
		"none": {
			counts: []installation.CustomResources{{Definition: "a"}, {Definition: "b"}},
			want:   &transition{kind: corev1.EventTypeNormal, note: "deleted with its definitions, of which there are no custom resources"},
		},
		"some": {
			counts: []installation.CustomResources{{Definition: "a", Count: 2}, {Definition: "b"}, {Definition: "c", Count: 1}},
			want: &transition{kind: corev1.EventTypeWarning, note: "deleted with 3 custom resources: 2 of a, 1 of c; " +
				"those with finalizers stay, and hang, unless the operator removes them before it goes"},
		},
		"one": {
			counts: []installation.CustomResources{{Definition: "a", Count: 1}},
			want: &transition{kind: corev1.EventTypeWarning, note: "deleted with 1 custom resource: 1 of a; " +
				"those with finalizers stay, and hang, unless the operator removes them before it goes"},
		},
		"not all known": {
			counts: []installation.CustomResources{{Definition: "a", Err: forbidden}, {Definition: "b", Err: errors.New("boom")}},
			want: &transition{
				kind: corev1.EventTypeWarning,
				note: "deleted with all custom resources of its definitions; not known how many there are of a (the ServiceAccount may not list them), b (boom)",
			},
		},
		"not known": {
			err: errors.New("boom"),
			want: &transition{
				kind: corev1.EventTypeWarning,
				note: "deleted with all custom resources of its definitions; how many that are is not known: boom",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if tc.want != nil {
				tc.want.reason = eventCustomResources
			}
			if diff := cmp.Diff(tc.want, customResourcesOf(tc.counts, tc.err), cmp.AllowUnexported(transition{})); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
		})
	}
}

func TestContentThatStaysIsTold(t *testing.T) {
	t.Parallel()
	if got := stayingOf(nil); got != nil {
		t.Errorf("got %+v where nothing stays", got)
	}
	want := &transition{
		kind: corev1.EventTypeWarning, reason: eventContentStays,
		note: "objects are kept, because the extension never became their owner (they belong to Helm or to an earlier extension of this name): " +
			`ConfigMap "a", ConfigMap "b". To delete them, create the extension again with a ServiceAccount that may adopt them, wait until it is ready, ` +
			"and delete it; or delete them by hand. Deleting a CustomResourceDefinition deletes all its custom resources",
	}
	if diff := cmp.Diff(want, stayingOf([]string{`ConfigMap "a"`, `ConfigMap "b"`}), cmp.AllowUnexported(transition{})); diff != "" {
		t.Errorf("event (-want +got):\n%s", diff)
	}
	ext := sampleExtension()
	w := newWorld(t)
	ext.Finalizers, ext.DeletionTimestamp = slices.Clone(finalizers), &metav1.Time{Time: w.reconciler.Now()}
	w = newWorld(t, ext)
	w.staying = []object.Key{keyOf("ConfigMap", "", "a"), keyOf("ConfigMap", "", "b")}
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	if !slices.Contains(w.events, "Warning ContentStays: "+want.note) {
		t.Errorf("told: %q", w.events)
	}
}

// TestImportedObjectsAreClaimed deletes an extension whose objects were imported from Helm, and whose
// ServiceAccount may not write them.
func TestImportedObjectsAreClaimed(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		age     time.Duration
		err     error
		ready   string // with its message; empty if the extension is gone
		requeue time.Duration
		wantErr error
		event   string
	}{
		"soon":   {err: errors.New("boom"), ready: "False Terminating: being deleted; setting the owner of the objects installed by Helm failed: boom. Retrying for one minute; then these objects are kept", requeue: uninstallInterval},
		"queued": {err: turn.ErrWait, ready: "False Terminating: being deleted, which waits for its turn: it is large or slow, and so are others that are worked on", wantErr: requeue.ErrUnderway},
		"late": {
			err: errors.New("boom"), age: uninstallPatience,
			event: `Warning ContentStays: objects that Helm installed are kept: ConfigMap "a": setting their owner failed: boom. ` +
				"Delete them by hand. Deleting a CustomResourceDefinition deletes all its custom resources",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := sampleExtension()
			ext.DeletionTimestamp = &metav1.Time{Time: newWorld(t).reconciler.Now().Add(-tc.age)}
			w := newWorld(t, ext)
			w.unclaimed, w.claimErr = []object.Key{keyOf("ConfigMap", "", "a")}, tc.err
			result, err := w.reconcile(t)
			if !errors.Is(err, tc.wantErr) || result.RequeueAfter != tc.requeue {
				t.Errorf("got %v, %v; want a reconcile after %s", result, err, tc.requeue)
			}
			if err := w.client.Get(t.Context(), client.ObjectKeyFromObject(ext), ext); apierrors.IsNotFound(err) != (tc.ready == "") {
				t.Fatalf("reading the extension: %v", err)
			}
			staying := slices.DeleteFunc(slices.Clone(w.events), func(text string) bool { return !strings.Contains(text, eventContentStays) })
			if diff := cmp.Diff(tc.event, strings.Join(staying, "\n")); diff != "" {
				t.Errorf("event (-want +got):\n%s", diff)
			}
			if tc.ready == "" {
				return
			}
			if diff := cmp.Diff(tc.ready, brief(&w.extension(t).Status, ocv1.TypeReady)); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
		})
	}
}

// TestKeptObjectsAreNamed deletes extensions with kept objects, which can be released or not, under each policy by which
// other objects are deleted.
func TestKeptObjectsAreNamed(t *testing.T) {
	t.Parallel()
	const kept = `kept because of the annotation helm.sh/resource-policy: ConfigMap "a", ConfigMap "b". `
	for name, tc := range map[string]struct {
		err     error
		wantErr error
		event   string
	}{
		"released":     {event: "Normal Kept: " + kept + "An extension with the same name and namespace adopts them if it installs them again"},
		"not released": {err: errors.New("boom"), event: "Warning Kept: " + kept + "Removing the labels of the extension failed: boom. The objects are not deleted"},
		"queued":       {err: turn.ErrWait, wantErr: requeue.ErrUnderway},
	} {
		for policy, uninstall := range map[string]*ocv1.ClusterExtensionUninstallConfig{
			"delete": nil, "keep": {CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyKeep},
		} {
			t.Run(name+", policy "+policy, func(t *testing.T) {
				t.Parallel()
				ext := sampleExtension()
				ext.Spec.Uninstall = uninstall
				ext.DeletionTimestamp = &metav1.Time{Time: newWorld(t).reconciler.Now()}
				w := newWorld(t, ext)
				w.stays, w.releaseErr = []object.Key{keyOf("ConfigMap", "", "a"), keyOf("ConfigMap", "", "b")}, tc.err
				if _, err := w.reconcile(t); !errors.Is(err, tc.wantErr) {
					t.Errorf("got %v, want %v", err, tc.wantErr)
				}
				events := slices.DeleteFunc(slices.Clone(w.events), func(text string) bool { return !strings.Contains(text, " "+eventKept+":") })
				if diff := cmp.Diff(tc.event, strings.Join(events, "\n")); diff != "" {
					t.Errorf("event (-want +got):\n%s", diff)
				}
			})
		}
	}
}
