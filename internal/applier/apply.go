package applier

import (
	"context"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/preflight"
)

// Desired is a revision with the objects it consists of.
type Desired struct {
	Revision Revision

	// Objects are not changed. They carry no marks of an owner.
	Objects []*unstructured.Unstructured

	// Preflight is what is to be let pass of what speaks against it.
	Preflight preflight.Policy

	// Annotations go into the release's chart metadata.
	Annotations map[string]string

	// BeforeWrite is called after all checks and before the first write, of content
	// or of records. If it fails, nothing is written. It may be nil.
	BeforeWrite func(context.Context) error
}

// Apply makes a new revision: install or upgrade. It reads or tries, and checks,
// every object first, except for those of which watches have told no change since
// the last revision; errors before the first write leave Result.Began false.
//
// It fails with [*object.UnknownKindsError], [*permission.MissingError],
// [*preflight.ApprovalError], [*object.ConflictError], [*preflight.UnsafeError],
// [*ObjectsError], [*RecordTooLargeError] or [ErrOwnerGone]; other errors are those
// of the API server.
func (a *Applier) Apply(ctx context.Context, owner object.Owner, desired Desired) (Result, error) {
	client, err := impersonation.As(a.clients, owner.Account(), dynamic.NewForConfigAndClient)
	if err != nil {
		return Result{}, err
	}
	history, err := a.histories.of(ctx, owner)
	if err != nil {
		return Result{}, err
	}
	defer a.reconsider(history)
	defer history.trim()
	guard := a.guard(owner)
	planner := planner{client: client, mapper: a.config.Mapper, owner: owner, guard: guard}
	operation, notes, err := a.prepare(ctx, planner, history, desired)
	if err != nil {
		return Result{}, err
	}
	if err := guard.ask(ctx); err != nil {
		return Result{}, err
	}
	if desired.BeforeWrite != nil {
		if err := desired.BeforeWrite(ctx); err != nil {
			return Result{}, err
		}
	}
	known := a.state(owner)
	known.unsettle()
	if err := history.sweep(ctx); err != nil {
		return Result{}, err
	}
	if err := history.recover(ctx); err != nil {
		return Result{}, err
	}
	executor := newExecutor(planner.writer())
	if err := operation.run(ctx, executor); err != nil {
		return Result{Changes: executor.outcome.changes, Began: executor.outcome.began}, err
	}
	revision := desired.Revision // a pointer into desired would keep all the objects in memory
	known.setRecord(State{Installed: &revision}, history.deployedSize())
	kept, err := a.certify(ctx, executor, operation.plan.steps)
	if err != nil {
		return Result{Changes: executor.outcome.changes, Began: true}, err
	}
	known.settle(executor.outcome, kept, a.config.Now())
	a.follow(owner, operation.plan.steps)
	result := a.result(owner, executor.outcome)
	result.Notes = notes
	return result, nil
}

// prepare makes every check. Notes are what they have found and let pass.
func (a *Applier) prepare(ctx context.Context, planner planner, history *history, desired Desired) (_ *operation, notes []string, err error) {
	owned := make([]*unstructured.Unstructured, 0, len(desired.Objects))
	for _, object := range desired.Objects {
		owned = append(owned, planner.owner.Own(object))
	}
	before, err := history.objects(ctx, called(owned))
	if err != nil {
		return nil, nil, err
	}
	plan, err := planner.outline(owned, before)
	if err != nil {
		return nil, nil, err
	}
	if len(a.watches.denied(planner.owner.Name)) == 0 {
		plan.useCache(a.state(planner.owner).undisturbed())
	}
	notes, err = a.check(ctx, planner, plan, desired, before)
	if err != nil {
		return nil, nil, err
	}
	chart, err := chartOf(owned, desired.Annotations)
	if err != nil {
		return nil, nil, err
	}
	return &operation{
		owner:   planner.owner,
		history: history,
		plan:    plan,
		chart:   chart,
		labels:  labelsOf(desired.Revision),
	}, notes, nil
}

// check asks the questions in an order in which each answer makes sense: who may not
// read an object is to hear of all rights that are missing; definitions of others
// are none of our business; and what the API server would refuse is said in our
// words where we have better ones.
func (a *Applier) check(ctx context.Context, planner planner, plan *plan, desired Desired, before []*unstructured.Unstructured) (notes []string, err error) {
	onPermissions, err := a.checkPermissions(ctx, planner.owner, desired, before)
	if err != nil {
		return nil, err
	}
	if err := planner.survey(ctx, plan); err != nil {
		return nil, err
	}
	onDefinitions, err := a.checkDefinitions(ctx, desired.Preflight, plan)
	if err != nil {
		return nil, err
	}
	err = planner.rehearse(ctx, plan)
	return slices.Concat(onPermissions, onDefinitions, plan.replacements()), err
}
