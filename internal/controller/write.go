package controller

import (
	"context"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/equality"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/requeue"
)

// writeStatus sends one patch if the status differs, and gives the extension as it
// is then. Conditions are a list, and a merge patch replaces lists: the patch is
// locked, so that a condition that somebody else has just set is not lost.
func (r *Reconciler) writeStatus(
	ctx context.Context, ext *ocv1.ClusterExtension, status *ocv1.ClusterExtensionStatus,
) (*ocv1.ClusterExtension, error) {
	if equality.Semantic.DeepEqual(&ext.Status, status) {
		return ext, nil
	}
	changed := ext.DeepCopy()
	status.DeepCopyInto(&changed.Status)
	patch := client.MergeFromWithOptions(ext, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Status().Patch(ctx, changed, patch); err != nil {
		return nil, fmt.Errorf("error updating status: %w", err)
	}
	return changed, nil
}

// wasBehind is for a pass that has written nothing, because the status that it has read says
// all that there is to say. It reports whether there is a newer one by now, which then has
// to be replaced. Of one that comes to be known after this, statusDiffers learns: that is
// why this comes after the conclusion was noted, and not before.
func (r *Reconciler) wasBehind(ctx context.Context, ext *ocv1.ClusterExtension) bool {
	r.announced.Delete(ext.Name) // nothing was written after it
	now := &ocv1.ClusterExtension{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(ext), now)
	return err == nil && !equality.Semantic.DeepEqual(&now.Status, &ext.Status)
}

// writeFinalizers replaces the finalizers and touches nothing else.
func (r *Reconciler) writeFinalizers(ctx context.Context, ext *ocv1.ClusterExtension, finalizers []string) error {
	changed := ext.DeepCopy()
	changed.Finalizers = finalizers
	patch := client.MergeFromWithOptions(ext, client.MergeFromWithOptimisticLock{})
	if err := r.Client.Patch(ctx, changed, patch); err != nil {
		return fmt.Errorf("error updating finalizers: %w", err)
	}
	return nil
}

// atOnce is as soon as a delay can be.
const atOnce = time.Nanosecond

// resultOf turns a verdict into what the work queue understands. The status has told
// of its errors.
func resultOf(outcome Outcome, v verdict, p phase) (ctrl.Result, error) {
	if outcome.hasMore() {
		return ctrl.Result{RequeueAfter: atOnce}, nil
	}
	result := ctrl.Result{RequeueAfter: sooner(outcome.RecheckAfter, p.remaining)}
	switch {
	case v.isRetried():
		return result, &requeue.ReportedError{Err: outcome.Err}
	case v.disposition == Blocked && outcome.RepairErr != nil:
		return result, &requeue.ReportedError{Err: outcome.RepairErr}
	case v.disposition == Blocked:
		return result, reconcile.TerminalError(outcome.Err)
	}
	return result, nil
}

// sooner of two delays, of which zero is none.
func sooner(a, b time.Duration) time.Duration {
	if a == 0 || b != 0 && b < a {
		return b
	}
	return a
}
