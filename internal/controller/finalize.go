package controller

import (
	"context"
	"slices"

	corev1 "k8s.io/api/core/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// finalizers are those of the reference implementation. They guard nothing but
// what this process holds for an extension: its content is owned by the
// ClusterExtension and goes with it, whether or not the ServiceAccount still
// exists.
var finalizers = []string{ocv1.CleanupUnpackCacheFinalizer, ocv1.CleanupContentManagerCacheFinalizer}

// finalize lets go of an extension that is being deleted. Finalizers of others
// are theirs to remove; that of the garbage collector, which takes the extension off
// content that is to stay, is waited for.
func (r *Reconciler) finalize(ctx context.Context, ext *ocv1.ClusterExtension) (ctrl.Result, error) {
	r.forget(ctx, ext.Name)
	if isOrphaning(ext) {
		return ctrl.Result{}, nil
	}
	wait, err := r.letGo(ctx, ext)
	switch {
	case wait > 0:
		return ctrl.Result{RequeueAfter: min(wait, letGoRetry)}, nil
	case err != nil:
		r.tell(ext, &transition{kind: corev1.EventTypeWarning, reason: eventNotLetGo, note: notLetGoText(err)})
	}
	if err := r.warnDependents(ctx, ext); err != nil {
		return ctrl.Result{}, err
	}
	left := slices.DeleteFunc(slices.Clone(ext.Finalizers), isOurs)
	if len(left) == len(ext.Finalizers) {
		return ctrl.Result{}, nil
	}
	return ctrl.Result{}, client.IgnoreNotFound(r.writeFinalizers(ctx, ext, left))
}

func isOurs(finalizer string) bool { return slices.Contains(finalizers, finalizer) }

// missingFinalizers gives the finalizers that an extension should have, or nil
// when it has them.
func missingFinalizers(ext *ocv1.ClusterExtension) []string {
	wanted := slices.Clone(ext.Finalizers)
	for _, name := range finalizers {
		if !slices.Contains(wanted, name) {
			wanted = append(wanted, name)
		}
	}
	if len(wanted) == len(ext.Finalizers) {
		return nil
	}
	return wanted
}

// warnDependents tells of an extension that goes although others require it.
// It holds nothing up.
func (r *Reconciler) warnDependents(ctx context.Context, ext *ocv1.ClusterExtension) error {
	if !slices.ContainsFunc(ext.Finalizers, isOurs) || ext.Status.Install == nil {
		return nil
	}
	wanted, _ := translate(ext)
	if wanted.Selector == nil {
		return nil
	}
	var observed Observed
	if r.observeOffers(ctx, wanted, &observed); observed.CatalogsErr != nil {
		return observed.CatalogsErr
	}
	observed.Installation.Installed = &Installed{Bundle: installedIdentity(ext)}
	r.tell(ext, removalOf(dependents(wanted.Request.Package, nil, observed)))
	return nil
}
