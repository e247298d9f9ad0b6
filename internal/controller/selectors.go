package controller

import (
	"context"
	"slices"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// sharing is the last result of [Reconciler.SharedPods] for an installed bundle.
type sharing struct {
	// residents describes the other extensions of the namespace, and bundle is the installed
	// bundle, at that time.
	residents string
	bundle    bundle.Identity

	shared []bundle.SharedService
}

// selectAfter is the time until the next reconcile if this one found all rollouts complete. No event
// triggers that reconcile: the rollouts were complete when the workloads were read.
const selectAfter = time.Second

// isToSelect reports whether the next reconcile selects by the label, because all pods have it now.
func (o *Outcome) isToSelect() bool {
	return o.Installed != nil && o.Installed.Selection == bundle.SelectLabelled && o.Suspended == nil && o.Err == nil &&
		!o.Observed.Reselects && !o.WorkloadsUnseen && isRolledOut(o.Workloads)
}

// isRolledOut reports whether all Deployments have no pods but those of their last revision.
func isRolledOut(workloads []health.Workload) bool {
	return !slices.ContainsFunc(workloads, func(one health.Workload) bool {
		return one.Key.GroupKind == health.DeploymentKind && (one.RollingOut || one.Stuck || one.Available != metav1.ConditionTrue)
	})
}

// reselects reports whether the installed bundle is to be applied again with another selection.
// It makes no request while the bundle and the other extensions of the namespace are the same.
func (r *Reconciler) reselects(ctx context.Context, wanted Wanted, installed *installation.Revision) bool {
	if installed == nil || wanted.Suspended || r.SharedPods == nil {
		return false
	}
	switch installed.Selection {
	case bundle.SelectLabelled:
		workloads, seen := r.Releases.Workloads(wanted.Owner)
		return seen && isRolledOut(workloads)
	case bundle.SelectAuthored:
		return bundle.CanSeparate(r.sharedBy(ctx, wanted.Owner, *installed))
	case bundle.SelectOwn:
	}
	return false
}

// sharedBy returns no Services if the other extensions are unknown or Deployments cannot be read.
func (r *Reconciler) sharedBy(ctx context.Context, owner object.Owner, installed installation.Revision) []bundle.SharedService {
	residents, err := r.Neighbours.residents(ctx, owner)
	if err != nil {
		return nil
	}
	value, _ := r.sharings.Load(owner.Name)
	known, isKnown := value.(sharing)
	switch {
	case isKnown && known.residents == residents && known.bundle == installed.Bundle:
		return known.shared
	case residents == "":
		r.sharings.Delete(owner.Name)
		return nil
	}
	shared, err := r.SharedPods(ctx, owner, nil)
	if err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "looking for pods of others that Services select")
		return nil
	}
	r.sharings.Store(owner.Name, sharing{residents: residents, bundle: installed.Bundle, shared: shared})
	return shared
}

// selectPods chooses how Services of a bundle select pods, and changes its objects for that. Charts
// and plain bundles are applied as their authors wrote them.
func (r *Reconciler) selectPods(ctx context.Context, wanted Wanted, outcome *Outcome, content *bundle.Bundle, desired *installation.Desired) error {
	if r.SharedPods == nil || !content.HasOperator() {
		return nil
	}
	installed := outcome.Installed
	if installed == nil || installed.Selection == bundle.SelectAuthored {
		var err error
		if outcome.Shared, err = r.SharedPods(ctx, wanted.Owner, desired.Objects); err != nil {
			return err
		}
	}
	desired.Selection = bundle.FirstSelection(outcome.Shared)
	if installed != nil {
		workloads, seen := r.Releases.Workloads(wanted.Owner)
		desired.Selection = installed.Selection.Next(outcome.Shared, seen && isRolledOut(workloads))
	}
	var err error
	desired.Objects, err = bundle.WithSelection(desired.Objects, desired.Selection)
	return err
}

// mayShare reports whether both extensions are in one namespace, so that Services of the first may
// select pods of the second.
func (r *Reconciler) mayShare(ext, other *ocv1.ClusterExtension) bool {
	return r.SharedPods != nil && ext.Status.Install != nil && ext.Spec.Namespace == other.Spec.Namespace
}

// noteShared remembers the Services of a revision that was installed.
func (r *Reconciler) noteShared(ctx context.Context, owner object.Owner, outcome Outcome) {
	if residents, err := r.Neighbours.residents(ctx, owner); err == nil {
		r.sharings.Store(owner.Name, sharing{residents: residents, bundle: outcome.Installed.Bundle, shared: outcome.Shared})
	}
}

// noteSelection adds the Services to the outcome that select pods of others and cannot be changed. It
// requests another reconcile soon if that reconcile can select by the label.
func (r *Reconciler) noteSelection(outcome *Outcome) {
	if outcome.isToSelect() {
		outcome.RecheckAfter = sooner(outcome.RecheckAfter, selectAfter)
	}
	value, _ := r.sharings.Load(outcome.Owner.Name)
	known, _ := value.(sharing)
	outcome.Shared = nil
	if outcome.Installed != nil && known.bundle == outcome.Installed.Bundle {
		outcome.Shared = fixedOf(known.shared)
	}
}

func fixedOf(shared []bundle.SharedService) []bundle.SharedService {
	return slices.DeleteFunc(slices.Clone(shared), func(one bundle.SharedService) bool { return !one.Fixed })
}
