package controller

import (
	"context"
	"errors"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/requeue"
	"github.com/clusterextensions/operator-controller/internal/turn"
)

// hanging is a world in which content takes long to be looked at.
type hanging struct{ *world }

func (w hanging) Apply(ctx context.Context, owner object.Owner, desired installation.Desired) (installation.Result, error) {
	w.passed += slowPass
	return w.world.Apply(ctx, owner, desired)
}

func (w hanging) Repair(ctx context.Context, owner object.Owner) (installation.Result, error) {
	w.passed += slowPass
	return w.world.Repair(ctx, owner)
}

// TestSlowExtensionsTakeTurns: after a pass that took long the next one waits for its turn,
// until one was fast again, also if the extension is to go.
func TestSlowExtensionsTakeTurns(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.reconciler.Releases = hanging{w}
	w.mustReconcile(t)

	other, end := w.reconciler.Turns.Begin(t.Context(), "other", "others")
	if err := turn.Take(other); err != nil {
		t.Fatal(err)
	}
	for range 2 {
		w.did = nil
		if result, err := w.reconcile(t); !errors.Is(err, requeue.ErrUnderway) || result.RequeueAfter != 0 {
			t.Fatalf("got %v, %v, want that it waits to be woken", result, err)
		}
		if len(w.did) > 0 {
			t.Errorf("done while it waits: %q", w.did)
		}
	}
	end()
	if woken := <-w.turns; woken != "x" {
		t.Errorf("%q is woken", woken)
	}
	w.mustReconcile(t) // which is as slow
	w.reconciler.Releases = w
	w.mustReconcile(t) // and which has its turn, as nobody else does

	other, end = w.reconciler.Turns.Begin(t.Context(), "other", "others")
	defer end()
	if err := turn.Take(other); err != nil {
		t.Fatal(err)
	}
	w.mustReconcile(t)

	w.reconciler.slow.Store("x", struct{}{})
	ext := w.extension(t)
	if err := w.client.Delete(t.Context(), ext); err != nil {
		t.Fatal(err)
	}
	if result, err := w.reconcile(t); !errors.Is(err, requeue.ErrUnderway) || result.RequeueAfter != 0 {
		t.Fatalf("got %v, %v, want that it waits to be woken", result, err)
	}
	if got := brief(&w.extension(t).Status, ocv1.TypeReady); got != string(metav1.ConditionFalse)+" Terminating: being deleted, which waits for its turn: it is large or slow, and so are others that are worked on" {
		t.Errorf("Ready is %s", got)
	}
}

// TestSuspensionIsNotWaitedFor: somebody who suspends a slow extension waits for nobody.
func TestSuspensionIsNotWaitedFor(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.mustReconcile(t)
	other, end := w.reconciler.Turns.Begin(t.Context(), "other", "others")
	defer end()
	if err := turn.Take(other); err != nil {
		t.Fatal(err)
	}
	w.reconciler.slow.Store("x", struct{}{})
	ext := w.extension(t)
	ext.Spec.Suspend = true
	if err := w.client.Update(t.Context(), ext); err != nil {
		t.Fatal(err)
	}
	w.mustReconcile(t)
	if !meta.IsStatusConditionTrue(w.extension(t).Status.Conditions, ocv1.TypeSuspended) {
		t.Error("it is not suspended")
	}
}

// TestPassesAreTimed: only passes that took long are slow.
func TestPassesAreTimed(t *testing.T) {
	t.Parallel()
	w := newWorld(t)
	for took, want := range map[time.Duration]bool{0: false, slowPass - 1: false, slowPass: true, time.Hour: true} {
		w.reconciler.slow.Delete("x")
		end := w.reconciler.timePass(t.Context(), "x")
		w.passed += took
		end()
		if _, got := w.reconciler.slow.Load("x"); got != want {
			t.Errorf("after %s: slow is %t", took, got)
		}
	}
}
