package applier

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/webhookcert"
)

// Apply makes a new revision: install or upgrade. Before the first write it reads every
// object or writes it in a dry run, and checks it. Objects that have not drifted since
// the last revision are not read again. Errors before the first write leave Result.Began
// false.
//
// It fails with [*object.UnknownKindsError], [*permission.MissingError],
// [*preflight.ApprovalError], [*object.ConflictError], [*preflight.UnsafeError],
// [*plan.ObjectsError], [*release.RecordTooLargeError] or [object.ErrOwnerGone]; other errors are those
// of the API server.
func (a *Applier) Apply(ctx context.Context, owner object.Owner, desired installation.Desired) (installation.Result, error) {
	ctx, warnings := impersonation.CollectWarnings(ctx)
	planner, err := a.planner(owner)
	if err != nil {
		return installation.Result{}, err
	}
	history, err := a.history(ctx, owner)
	if err != nil {
		return installation.Result{}, err
	}
	defer a.dropInvalid(history)
	defer history.Trim()
	operation, notes, err := a.planAndCheck(ctx, planner, history, desired)
	if err != nil {
		return installation.Result{}, err
	}
	if err := announce(ctx, planner.Guard, desired); err != nil {
		return installation.Result{}, err
	}
	known := a.memory(owner)
	known.renewing = false
	known.invalidate()
	if err := history.Sweep(ctx); err != nil {
		return installation.Result{}, err
	}
	if err := history.Recover(ctx); err != nil {
		return installation.Result{}, err
	}
	executor := planner.Executor()
	if err := operation.release.Run(ctx, content{plan: operation.plan, executor: executor}); err != nil {
		return resultOf(executor.Progress), err
	}
	revision := desired.Revision // a pointer into desired would keep all the objects in memory
	known.state, known.size = &installation.State{Installed: &revision}, history.DeployedSize()
	kept, err := a.certify(ctx, executor, operation.plan.Steps)
	if err != nil {
		failed := resultOf(executor.Progress)
		failed.Began = true
		return failed, err
	}
	a.settle(owner, known.drift, executor.Progress.Left, kept)
	a.watch(owner, operation.plan.Items(), executor.Progress.Left.Since())
	result := a.result(owner, executor.Progress)
	result.Notes, result.Warnings = notes, warnings.Texts()
	return result, nil
}

// settle notes how an operation has left all objects. One that it has added may have been changed
// already, which a repair finds.
func (a *Applier) settle(owner object.Owner, known *drift.State, left drift.Left, kept drift.Certificates) {
	if known.Settle(left, kept, a.config.Now()) {
		a.config.Changed(owner.Name)
	}
}

// announce is for the moment before the first write. What says that the extension is still
// there comes last.
func announce(ctx context.Context, guard *plan.Guard, desired installation.Desired) error {
	if desired.BeforeWrite != nil {
		confirmed, err := desired.BeforeWrite(ctx)
		if err != nil {
			return err
		}
		if confirmed {
			guard.Confirm()
		}
	}
	return guard.Ask(ctx)
}

// planAndCheck plans the operation and makes every preflight check. Notes are what the
// checks have found and let pass.
func (a *Applier) planAndCheck(ctx context.Context, planner *plan.Planner, history *release.History, desired installation.Desired) (_ *operation, notes []string, err error) {
	owned, before, err := contentOf(ctx, planner.Owner, history, desired)
	if err != nil {
		return nil, nil, err
	}
	planned, err := planner.Plan(owned, before)
	if err != nil {
		return nil, nil, err
	}
	if len(a.watches.Denied(planner.Owner.Name)) == 0 {
		planned.UseCache(a.memory(planner.Owner).notDrifted())
	}
	notes, err = a.check(ctx, planner, planned, desired, before)
	if err != nil {
		return nil, nil, err
	}
	recorded, err := history.NewOperation(desired.Revision, owned, desired.Annotations)
	return &operation{plan: planned, release: recorded}, notes, err
}

// contentOf are the objects that are wanted, as those of the extension, and those that may be on
// the cluster.
func contentOf(ctx context.Context, owner object.Owner, history *release.History, desired installation.Desired) (owned, before []*unstructured.Unstructured, err error) {
	owned = make([]*unstructured.Unstructured, 0, len(desired.Objects))
	for _, obj := range desired.Objects {
		owned = append(owned, owner.Own(obj))
	}
	before, err = history.Objects(ctx, release.NamedAs(owned))
	return owned, before, err
}

// operation is an install or upgrade that has been checked.
type operation struct {
	plan    *plan.Plan
	release *release.Operation
}

// content is what Helm asks about an operation: it answers from the plan, and executes it.
type content struct {
	plan     *plan.Plan
	executor *plan.Executor
}

// Objects implements [release.Content].
func (c content) Objects() []release.Object {
	objects := make([]release.Object, 0, len(c.plan.Steps))
	for i := range c.plan.Steps {
		objects = append(objects, release.Object{Item: c.plan.Steps[i].Item, Live: c.plan.Steps[i].Live})
	}
	return objects
}

// Write implements [release.Content].
func (c content) Write(ctx context.Context) error { return c.executor.Execute(ctx, c.plan) }

// LastApplied implements [release.Content]. It leaves out what has to do with certificates
// that the controller keeps: a fingerprint does not tell when one has to be renewed.
func (c content) LastApplied() map[object.Key]object.Fingerprint {
	prints := c.executor.Progress.Left.LastApplied()
	for i := range c.plan.Steps {
		if step := &c.plan.Steps[i]; webhookcert.Concerns(step.Object) {
			delete(prints, step.Key)
		}
	}
	return prints
}

// check makes the preflight checks, in an order in which each answer makes sense.
// Permissions come first: who may not read an object is to be told of all rights that are
// missing. Ownership comes before definitions: those of others are not checked. Whether an
// object is there at all is found out by creating it in a dry run, so that new objects have
// theirs here; those of all others come last, since what the API server refuses is told by
// the checks in better words.
func (a *Applier) check(ctx context.Context, planner *plan.Planner, planned *plan.Plan, desired installation.Desired, before []*unstructured.Unstructured) (notes []string, err error) {
	onPermissions, err := a.checkPermissions(ctx, planner.Owner, desired, before)
	if err != nil {
		return nil, err
	}
	if err := planner.Inspect(ctx, planned); err != nil {
		return nil, err
	}
	onDefinitions, err := a.checkDefinitions(ctx, desired.Preflight, planned)
	if err != nil {
		return nil, err
	}
	err = planner.DryRun(ctx, planned)
	return slices.Concat(onPermissions, onDefinitions, planned.Replacements()), err
}
