package applier

import (
	"context"
	"errors"
	"maps"
	"slices"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/turn"
	"github.com/clusterextensions/operator-controller/internal/webhookcert"
)

// Repair restores objects of the installed revision that have drifted: they were deleted,
// or fields that the revision sets were changed. It makes no request if no object has
// drifted and no certificate is due. In a process that has just started, the initial sync
// of the watches reports the drifted objects; Repair waits for it, [maxInitialSync] at most.
//
// Fields that others have added are kept. Flapping objects are repaired less and less
// often, see [installation.Result]. After all other objects were repaired, it returns
//   - [*object.ConflictError] for objects that the extension no longer owns, which are not changed;
//   - [*plan.ObjectsError] for objects that could not be read or written;
//   - [*object.UnknownKindsError] for objects of kinds that the cluster does not serve any more;
//   - [*object.MissingNamespacesError] for objects in missing namespaces.
//
// It returns [object.ErrOwnerGone] if an object has to be written for an extension that is being
// deleted, and [turn.ErrWait] if it has done nothing because it has to wait for other work.
func (a *Applier) Repair(ctx context.Context, owner object.Owner) (installation.Result, error) {
	known, now := a.memory(owner).drift, a.config.Now()
	isFirst := known.LookedAt().IsZero()
	extent, err := a.extentOf(ctx, owner, now)
	if err != nil {
		return installation.Result{}, err
	}
	memory := a.memory(owner)
	if extent.isEmpty() {
		return a.result(owner, plan.Progress{}), memory.lackingErr()
	}
	if extent.size() > largeRepair {
		if err := turn.Take(ctx); err != nil {
			return installation.Result{}, err
		}
	}
	ctx, warnings := impersonation.CollectWarnings(ctx)
	planner, err := a.planner(owner)
	if err != nil {
		return installation.Result{}, err
	}
	planned, left, err := a.planRepair(ctx, planner, extent)
	if err != nil {
		return installation.Result{}, err
	}
	executor := a.executorOf(planner)
	kept, err := a.restore(ctx, owner, executor, planned, extent.objects)
	repaired := executor.Repaired(isFirst, known.IsDeferred)
	known.NoteRepairs(repaired, now)
	if err != nil { // what could not be written is tried again after a while, whatever else there is to do
		known.SettleSome(finished(planned, executor.Progress.Left), drift.Certificates{})
		if isFirst {
			a.watchRepaired(owner, extent, planned, executor.Progress.Left)
		}
		failed := resultOf(executor.Progress)
		failed.Differences = repaired
		return failed, errors.Join(err, left)
	}
	known.Rest(now)
	a.settleRepair(owner, extent, executor.Progress.Left, kept, left)
	a.watchRepaired(owner, extent, planned, executor.Progress.Left)
	result := a.result(owner, executor.Progress)
	result.Differences, result.Warnings = repaired, warnings.Texts()
	return result, left
}

// settleRepair notes how a repair has left its objects. The error left names the objects that cannot exist.
func (a *Applier) settleRepair(owner object.Owner, extent extent, objects drift.Left, kept drift.Certificates, left error) {
	memory := a.memory(owner)
	switch {
	case !extent.all:
		a.settleSome(owner, memory.drift, objects, kept)
	case left == nil, !meta.IsNoMatchError(left): // until all of them are known that can be there, none is
		a.settle(owner, memory.drift, objects, kept)
		memory.lacking = namespacesIn(left)
	}
}

// watchRepaired starts the watches of all objects after a repair of all objects, unless they run already.
func (a *Applier) watchRepaired(owner object.Owner, extent extent, planned *plan.Plan, left drift.Left) {
	if extent.all && !extent.watched {
		a.watch(owner, planned.Items(), left.Since())
	}
}

// planRepair leaves out objects that cannot exist: their namespace or kind is missing. The error left names them.
func (a *Applier) planRepair(ctx context.Context, planner *plan.Planner, extent extent) (planned *plan.Plan, left, err error) {
	elsewhere, missing := object.OutsideLacking(a.lacks(ctx), extent.objects)
	objects, unserved := object.Served(a.config.Mapper, elsewhere)
	if !extent.all {
		if objects, err = planner.Only(objects, extent.some); err != nil {
			return nil, nil, err
		}
	}
	tried, _ := object.OutsideLacking(a.lacks(ctx), extent.tried) // these are deleted, so none of them is missing
	if planned, err = planner.PlanRepair(ctx, objects, tried); err != nil {
		return nil, nil, err
	}
	planned.SetRan(extent.ran)
	return planned, errors.Join(unserved, missing), nil
}

// extent contains the objects that a repair reads.
type extent struct {
	// objects are all objects of the revision; empty if there is nothing to read.
	objects []*unstructured.Unstructured

	// tried are the objects of later, failed revisions; see [release.History.triedAfter].
	tried []*unstructured.Unstructured

	// ran are the Jobs that are not created again.
	ran object.Ran

	// some are the objects to read, unless all is set.
	some []object.Key
	all  bool

	// watched is true if the watches of the objects have just been started.
	watched bool
}

// largeRepair is from how many objects on a repair waits for its turn.
const largeRepair = 128

// size is how many objects are to be read.
func (e extent) size() int {
	if e.all {
		return len(e.objects)
	}
	return len(e.some)
}

func (e extent) isEmpty() bool { return !e.all && len(e.some) == 0 }

func (a *Applier) extentOf(ctx context.Context, owner object.Owner, now time.Time) (extent, error) {
	memory := a.memory(owner)
	memory.renewing = false
	known := memory.drift
	var found extent
	found.some, found.all = known.ToLookAt(now)
	if unseen := now.Sub(known.LookedAt()); unseen >= recheckInterval && (memory.hasUnlabelled() || len(a.watches.Denied(owner.Name)) > 0) ||
		!now.Before(memory.nextConfirm()) && a.watches.Unconfirmed(owner.Name) {
		found.all = true
	}
	if slices.ContainsFunc(memory.lacking, func(namespace string) bool { return !a.config.LacksNamespace(ctx, namespace) }) {
		found.all = true
	}
	if found.isEmpty() {
		return found, nil
	}
	installed, err := a.installed(ctx, owner)
	if err != nil {
		return extent{}, err
	}
	found.objects, found.tried, found.ran = installed.Objects, installed.Tried, installed.Ran
	if known.LookedAt().IsZero() {
		found.watched = a.initialSync(ctx, owner, installed)
		found.some, found.all = known.ToLookAt(now)
	}
	return found, nil
}

// restore executes the plan; release contains all objects of the release. A failure of one object does not stop the
// others. Only certificates are left out if one of their objects failed: their objects have to agree.
func (a *Applier) restore(ctx context.Context, owner object.Owner, executor *plan.Executor, planned *plan.Plan, release []*unstructured.Unstructured) (kept drift.Certificates, err error) {
	failed := executor.Restore(ctx, planned)
	if errors.Is(failed, object.ErrOwnerGone) || ctx.Err() != nil {
		return drift.Certificates{}, failed
	}
	if !executor.HasFailed(webhookcert.Concerns) {
		kept, err = a.certify(ctx, executor, planned.Steps)
	}
	items := func() ([]object.Item, error) {
		known, err := object.Known(a.config.Mapper, owner, release)
		return slices.Collect(maps.Values(known)), err
	}
	return kept, errors.Join(failed, err, a.register(ctx, executor, planned, items, a.memory(owner).drift))
}

// finished leaves out objects that need more than their manifest, such as a certificate. A repair that fails may have
// stopped before that.
func finished(planned *plan.Plan, left drift.Left) drift.Left {
	live := maps.Clone(left.Live)
	for _, item := range planned.Items() {
		if isReadAtStart(item) {
			delete(live, item.Key)
		}
	}
	return drift.Left{Live: live}
}

func (a *Applier) installed(ctx context.Context, owner object.Owner) (*release.Installed, error) {
	history, err := a.history(ctx, owner)
	if err != nil {
		return nil, err
	}
	defer a.dropInvalid(history)
	defer history.Trim()
	return history.Installed(ctx)
}
