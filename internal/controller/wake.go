package controller

import (
	"context"
	"fmt"

	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/requeue"
)

// match picks extensions, for example those that something concerns.
type match func(*ocv1.ClusterExtension) bool

// isNews says that somebody waits for a pass over an extension: it is new, was edited or
// approved, is being deleted, or was left in the middle of a revision. Others were looked at
// before, and are only looked at again.
func isNews(ext *ocv1.ClusterExtension) bool {
	return !ext.DeletionTimestamp.IsZero() || lacksFinalizers(ext) ||
		ext.Status.ObservedGeneration != ext.Generation || isUnderway(ext)
}

// priorityOf a pass over an extension that something other than itself calls for.
func priorityOf(ext *ocv1.ClusterExtension) int {
	if isNews(ext) {
		return requeue.Now
	}
	return requeue.Later
}

// newsFirst has the extensions that are news, of those that there are when the process
// begins, looked at before the others.
func newsFirst() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			if ext, ok := e.Object.(*ocv1.ClusterExtension); ok && isNews(ext) {
				requeue.Add(queue, ext.Name, requeue.Now)
			}
		},
	}
}

// atNow is the priority of a pass over an extension for which somebody has just made what it
// waited for.
func atNow(*ocv1.ClusterExtension) int { return requeue.Now }

// wakes has passes made over the extensions that an object concerns, as it was or as it is.
func (r *Reconciler) wakes(concerned func(context.Context, client.Object) match, priority func(*ocv1.ClusterExtension) int) handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(ctx context.Context, e event.CreateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			r.lookAgain(ctx, queue, concerned(ctx, e.Object), priority)
		},
		UpdateFunc: func(ctx context.Context, e event.UpdateEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			before, after := concerned(ctx, e.ObjectOld), concerned(ctx, e.ObjectNew)
			r.lookAgain(ctx, queue, func(ext *ocv1.ClusterExtension) bool { return before(ext) || after(ext) }, priority)
		},
		DeleteFunc: func(ctx context.Context, e event.DeleteEvent, queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			r.lookAgain(ctx, queue, concerned(ctx, e.Object), priority)
		},
	}
}

// wakesAt is wakes for a signal.
func (r *Reconciler) wakesAt(concerned func(context.Context) match) handler.TypedEventHandler[struct{}, reconcile.Request] {
	return handler.TypedFuncs[struct{}, reconcile.Request]{
		GenericFunc: func(ctx context.Context, _ event.TypedGenericEvent[struct{}], queue workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			r.lookAgain(ctx, queue, concerned(ctx), priorityOf)
		},
	}
}

// everybody matches all extensions.
func (r *Reconciler) everybody(context.Context) match {
	return func(*ocv1.ClusterExtension) bool { return true }
}

// lookAgain has passes made over the extensions that match.
func (r *Reconciler) lookAgain(
	ctx context.Context, queue workqueue.TypedRateLimitingInterface[reconcile.Request], matches match, priority func(*ocv1.ClusterExtension) int,
) {
	err := eachExtension(ctx, r.Client, func(ext *ocv1.ClusterExtension) {
		if matches(ext) {
			requeue.Add(queue, ext.Name, priority(ext))
		}
	})
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "listing extensions to wake")
	}
}

// eachExtension calls visit with every extension of the cache, which it must not change.
func eachExtension(ctx context.Context, reader client.Reader, visit func(*ocv1.ClusterExtension)) error {
	var list ocv1.ClusterExtensionList
	if err := reader.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return fmt.Errorf("listing ClusterExtensions: %w", err)
	}
	for i := range list.Items {
		visit(&list.Items[i])
	}
	return nil
}

func nobody(*ocv1.ClusterExtension) bool { return false }
