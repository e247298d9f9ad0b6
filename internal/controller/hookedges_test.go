package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// leaving is an extension with something installed that is being deleted.
func leaving(t *testing.T, change func(*ocv1.ClusterExtension)) *world {
	t.Helper()
	ext := sampleExtension()
	ext.Finalizers, ext.DeletionTimestamp = append(slices.Clone(finalizers), ocv1.UninstallPolicyFinalizer), &metav1.Time{Time: time.Unix(1000, 0)}
	change(ext)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ext.Spec.Namespace, Name: ext.Spec.ServiceAccount.Name}}
	w := newWorld(t, ext, account)
	w.installation.Installed = &installation.Revision{}
	return w
}

// TestHookThatHasNoRoomIsNotSkipped: the API server says Forbidden of a quota that is used up as it does of
// rights that are lacking. The backup before a deletion waits for room; it is not left out, and what it
// was to save is not deleted.
func TestHookThatHasNoRoomIsNotSkipped(t *testing.T) {
	t.Parallel()
	for name, why := range map[string]string{
		"quota":    "exceeded quota: jobs, requested: count/jobs.batch=1, used: count/jobs.batch=5, limited: count/jobs.batch=5",
		"security": `violates PodSecurity "restricted:latest": allowPrivilegeEscalation != false`,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := leaving(t, func(*ocv1.ClusterExtension) {})
			refused := apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "backup", errors.New(why))
			key := object.Key{GroupKind: schema.GroupKind{Group: "batch", Kind: "Job"}, Namespace: "ns", Name: "backup"}
			w.deletionHooks = map[hook.Event][]error{hook.PreDelete: {&plan.ObjectsError{Failures: []plan.ObjectFailure{{Action: "creating", Object: key, Err: refused}}}}}
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(w.did, "hooks before deletion") {
				t.Fatalf("did %q", w.did)
			}
			if err := w.client.Get(t.Context(), client.ObjectKey{Name: "x"}, &ocv1.ClusterExtension{}); err != nil {
				t.Errorf("the hook was left out, and all is deleted: %v; events %q", err, w.events)
			}
		})
	}
}

// TestContentThatWasDeletedIsNotPutBack: hooks wait until all content is gone. What goes wrong after that does not
// have it written once more, to be deleted again.
func TestContentThatWasDeletedIsNotPutBack(t *testing.T) {
	t.Parallel()
	underway := &installation.HookUnderwayError{Event: hook.PostDelete, RecheckAfter: time.Second}
	tests := map[string]struct {
		policy UninstallPolicy
		wrong  func(*world)
	}{
		"definitions are kept, and the next look at them fails": {
			policy: UninstallKeep, wrong: func(w *world) { w.keepErr = errors.New("boom") },
		},
		"a custom resource is made while content goes": {
			policy: UninstallRefuseWhileInUse, wrong: func(w *world) {
				w.uses = [][]installation.Use{{{Definition: "widgets.p", Count: 1, First: []installation.StoredObject{storedWidget("a")}}}}
			},
		},
		"records cannot be read": {
			policy: UninstallDelete, wrong: func(w *world) { w.deletionHooksErr = errors.New("boom") },
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := leaving(t, func(*ocv1.ClusterExtension) {})
			w.reconciler.UninstallPolicy = tc.policy
			w.deletionHooks = map[hook.Event][]error{hook.PostDelete: {underway}}
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if !slices.Contains(w.did, "hooks after deletion") {
				t.Fatalf("did %q", w.did)
			}
			w.did = nil
			tc.wrong(w)
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			if slices.Contains(w.did, "repair") {
				t.Errorf("what was deleted is written again: did %q", w.did)
			}
		})
	}
}

// TestDeletionThatWaitsForAHookForLong: an object of an earlier run has a finalizer of its chart, so that the hook before
// a deletion never begins. After some time that is for a person, who is told what to do.
func TestDeletionThatWaitsForAHookForLong(t *testing.T) {
	t.Parallel()
	w := leaving(t, func(ext *ocv1.ClusterExtension) {
		ext.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0).Add(-24 * time.Hour)}
	})
	key := object.Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: "notify"}
	w.deletionHooks = map[hook.Event][]error{hook.PreDelete: {&installation.HookUnderwayError{Event: hook.PreDelete, Object: key, Going: true, RecheckAfter: time.Second}}}
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	got := &ocv1.ClusterExtension{}
	if err := w.client.Get(t.Context(), client.ObjectKey{Name: "x"}, got); err != nil {
		t.Fatal(err)
	}
	if ready := brief(&got.Status, ocv1.TypeReady); !strings.Contains(ready, "DeletionBlocked") || !strings.Contains(ready, "Skip") {
		t.Errorf("after a day Ready is %q", ready)
	}
}
