package applier

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/webhookcert"
)

// Apply makes a new revision: install or upgrade. Before the first write it reads every
// object or writes it in a dry run, and checks it. Objects that have not drifted since
// the last revision are not read again. Errors before the first write leave Result.Began
// false.
//
// It fails with [*object.TooLargeError], [*object.UnknownKindsError], [*object.MissingNamespacesError], [*permission.MissingError],
// [*preflight.ApprovalError], [*object.ConflictError], [*preflight.UnsafeError],
// [*plan.ObjectsError], [*release.RecordTooLargeError], [*installation.HookUnderwayError],
// [*installation.HookFailedError] or [object.ErrOwnerGone]; other errors are those of the API server.
func (a *Applier) Apply(ctx context.Context, owner object.Owner, desired installation.Desired) (installation.Result, error) {
	known := a.memory(owner)
	wanted := slices.Concat(desired.Objects, hook.Objects(hook.WithoutTests(desired.Hooks)))
	if lacking := object.Lacking(a.lacks(ctx), wanted); slices.ContainsFunc(lacking, func(one string) bool { return slices.Contains(known.refused, one) }) {
		// Otherwise a user who may delete one of many namespaces could make the controller check all objects for ever.
		return installation.Result{}, missingNamespaces(lacking, desired)
	}
	result, err := a.apply(ctx, owner, desired)
	err = a.forNamespaces(ctx, err, wanted, desired)
	known.refused = namespacesIn(err)
	return result, err
}

// namespacesIn returns the missing namespaces that an error names.
func namespacesIn(err error) []string {
	if missing, ok := errors.AsType[*object.MissingNamespacesError](err); ok {
		return missing.Namespaces
	}
	return nil
}

func (a *Applier) apply(ctx context.Context, owner object.Owner, desired installation.Desired) (installation.Result, error) {
	ctx, warnings := impersonation.CollectWarnings(ctx)
	owner.Predecessor.ServiceVersion = desired.Bundle.Name
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
	if err := a.takeUp(ctx, owner, history, desired); err != nil {
		return installation.Result{}, err
	}
	executor := a.executorOf(planner)
	before := func(ctx context.Context) error { return a.runRecordedHooks(ctx, owner, history, desired) }
	if err := operation.release.Run(ctx, content{plan: operation.plan, executor: executor, before: before}); err != nil {
		return resultOf(executor.Progress), err
	}
	err = a.complete(ctx, history, operation.plan, executor, desired.Revision)
	if err == nil {
		err = a.histories.ForgetInherited(ctx, owner)
	}
	if err != nil {
		failed := resultOf(executor.Progress)
		failed.Began = true
		return failed, err
	}
	result := a.result(owner, executor.Progress)
	result.Leftovers = operation.plan.Leftovers()
	result.Notes, result.Warnings = slices.Concat(desired.Notes, notes, operation.plan.Refusals()), warnings.Texts()
	return result, nil
}

// complete runs after the record of the revision is complete: it writes certificates and deferred objects, and starts the
// watches. The revision is a copy: a pointer into the desired state would keep all objects in memory.
func (a *Applier) complete(ctx context.Context, history *release.History, planned *plan.Plan, executor *plan.Executor, revision installation.Revision) error {
	owner := planned.Owner
	known := a.memory(owner)
	state, err := history.State(ctx)
	if err != nil {
		return err
	}
	state.Installed = &revision
	known.state, known.size = &state, history.DeployedSize()
	kept, err := a.certify(ctx, executor, planned.Steps)
	if err == nil {
		err = a.register(ctx, executor, planned, func() ([]object.Item, error) { return planned.Items(), nil }, known.drift)
	}
	if err != nil {
		return err
	}
	a.settle(owner, known.drift, executor.Progress.Left, kept)
	a.watch(owner, planned.Items(), executor.Progress.Left.Since())
	if planned.HasRefusals() { // the repair that follows reports these objects
		known.drift.LookAtAll()
		a.config.Changed(owner.Name)
	}
	return nil
}

// takeUp continues an interrupted operation: it runs the hooks of this revision, deletes a hook of another revision, and
// closes the records of both.
func (a *Applier) takeUp(ctx context.Context, owner object.Owner, history *release.History, desired installation.Desired) error {
	if err := history.Sweep(ctx); err != nil {
		return err
	}
	if err := a.takeUpHooks(ctx, owner, history, desired); err != nil {
		return err
	}
	return history.Recover(ctx)
}

// settle notes how an operation has left all objects. If a new object has been changed already, the next repair
// restores it.
func (a *Applier) settle(owner object.Owner, known *drift.State, left drift.Left, kept drift.Certificates) {
	if known.Settle(left, kept, a.config.Now()) {
		a.config.Changed(owner.Name)
	}
}

// settleSome is settle for an operation on some objects.
func (a *Applier) settleSome(owner object.Owner, known *drift.State, left drift.Left, kept drift.Certificates) {
	if known.SettleSome(left, kept) {
		a.config.Changed(owner.Name)
	}
}

// announce reports progress before the first write. The last check is that the extension still exists.
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
	if err := object.CheckSizes(slices.Concat(desired.Objects, hook.Objects(hook.WithoutTests(desired.Hooks)))); err != nil {
		return nil, nil, err
	}
	planned, owned, before, err := a.planContent(ctx, planner, history, desired)
	if err != nil {
		return nil, nil, err
	}
	if len(a.watches.Denied(planner.Owner.Name)) == 0 {
		planned.UseCache(a.memory(planner.Owner).notDrifted())
	}
	notes, err = a.check(ctx, planner, planned, history, desired, before)
	if err != nil {
		return nil, nil, err
	}
	recorded, err := history.NewOperation(desired.Revision, owned, desired.Hooks, desired.Annotations)
	return &operation{plan: planned, release: recorded}, notes, err
}

// planContent returns a plan, with the objects that [Applier.contentOf] returns.
func (a *Applier) planContent(ctx context.Context, planner *plan.Planner, history *release.History, desired installation.Desired) (planned *plan.Plan, owned, before []*unstructured.Unstructured, err error) {
	owned, before, err = a.contentOf(ctx, planner.Owner, history, desired)
	if err != nil {
		return nil, nil, nil, err
	}
	helmCRDs, err := history.HelmCRDs(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	ran, err := history.Ran(ctx)
	if err != nil {
		return nil, nil, nil, err
	}
	if planned, err = planner.Plan(owned, before, helmCRDs); err != nil {
		return nil, nil, nil, err
	}
	planned.SetRan(ran)
	planned.Installed = func(ctx context.Context) ([]*unstructured.Unstructured, error) {
		// A certificate is about several objects, which have to agree.
		return history.InstalledThat(ctx, func(obj *unstructured.Unstructured) bool { return !webhookcert.Concerns(obj) })
	}
	return planned, owned, before, nil
}

// contentOf returns the desired objects with the marks of the extension, and the objects that may exist on the cluster. It
// leaves out objects in missing namespaces: they were deleted with the namespace, and so was, most likely, the permission
// to read them.
func (a *Applier) contentOf(ctx context.Context, owner object.Owner, history *release.History, desired installation.Desired) (owned, before []*unstructured.Unstructured, err error) {
	owned = make([]*unstructured.Unstructured, 0, len(desired.Objects))
	for _, obj := range desired.Objects {
		owned = append(owned, owner.Own(obj))
	}
	var left release.Leftovers
	if left.Content, err = a.histories.Inherited(ctx, a.config.Mapper, owner); err != nil {
		return nil, nil, err
	}
	own, err := history.Objects(ctx, release.NamedAs(owned))
	if err != nil {
		return nil, nil, err
	}
	left.Content = append(left.Content, own...)
	if left.Hooks, err = history.HooksLeft(ctx); err != nil {
		return nil, nil, err
	}
	before = left.Before(owner, owned, desired.Hooks)
	wanted := map[string]bool{}
	for _, obj := range owned {
		wanted[obj.GetNamespace()] = true
	}
	gone := object.Lacking(func(namespace string) bool {
		return !wanted[namespace] && a.config.LacksNamespace(ctx, namespace)
	}, before)
	return owned, object.Outside(gone, before), nil
}

// lacks returns a function that reports whether a namespace is missing.
func (a *Applier) lacks(ctx context.Context) func(namespace string) bool {
	return func(namespace string) bool { return a.config.LacksNamespace(ctx, namespace) }
}

// forNamespaces replaces a failure about objects or hooks in missing namespaces by [*object.MissingNamespacesError]. The
// answer of the API server names other causes, such as missing permissions. A missing namespace does not prevent the first
// try, since a new one may not be in the cache yet. It prevents further tries.
func (a *Applier) forNamespaces(ctx context.Context, err error, wanted []*unstructured.Unstructured, desired installation.Desired) error {
	missing, isMissing := errors.AsType[*permission.MissingError](err)
	failed, hasFailed := errors.AsType[*plan.ObjectsError](err)
	if !isMissing && !hasFailed {
		return err
	}
	lacking := object.Lacking(a.lacks(ctx), wanted)
	isLacking := func(namespace string) bool { return slices.Contains(lacking, namespace) }
	if isMissing && slices.ContainsFunc(missing.Rules, func(rule permission.Rule) bool { return isLacking(rule.Namespace) }) ||
		hasFailed && slices.ContainsFunc(failed.Failures, func(failure plan.ObjectFailure) bool { return isLacking(failure.Object.Namespace) }) {
		return missingNamespaces(lacking, desired)
	}
	return err
}

// missingNamespaces returns the error. For a chart it names an object in the first of the namespaces.
func missingNamespaces(lacking []string, desired installation.Desired) *object.MissingNamespacesError {
	missing := &object.MissingNamespacesError{Namespaces: lacking}
	if origin, known := desired.Elsewhere[lacking[0]]; known {
		missing.Object, missing.Value = fmt.Sprintf("%s %q of %s", origin.Kind, origin.Name, origin.File), origin.Value
	}
	return missing
}

// operation is an install or upgrade that has been checked.
type operation struct {
	plan    *plan.Plan
	release *release.Operation
}

// content answers the questions of Helm about an operation from the plan, and executes the plan.
type content struct {
	plan     *plan.Plan
	executor *plan.Executor

	// before runs the hooks before the content.
	before func(context.Context) error
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
func (c content) Write(ctx context.Context) error {
	if err := c.before(ctx); err != nil {
		return err
	}
	return c.executor.Execute(ctx, c.plan)
}

// LastApplied implements [release.Content]. It leaves out objects with certificates of the controller: a fingerprint does
// not show when a certificate has to be renewed. It also leaves out objects that wait for their servers: they may not be
// written yet.
func (c content) LastApplied() map[object.Key]object.Fingerprint {
	prints := c.executor.Progress.Left.LastApplied()
	for i := range c.plan.Steps {
		if step := &c.plan.Steps[i]; isReadAtStart(step.Item) {
			delete(prints, step.Key)
		}
	}
	return prints
}

// Ran implements [release.Content].
func (c content) Ran() object.Ran { return c.executor.Ran(c.plan) }

// check runs the preflight checks. Their order makes each message useful:
//   - Permissions are first: if one object cannot be read, the message names all missing permissions.
//   - Ownership is before CRDs: CRDs of other owners are not checked.
//   - New objects get their dry run with ownership, because it shows whether they exist.
//   - The dry runs of all other objects are last: the checks explain a refusal better than the API server.
func (a *Applier) check(ctx context.Context, planner *plan.Planner, planned *plan.Plan, history *release.History, desired installation.Desired, before []*unstructured.Unstructured) (notes []string, err error) {
	onPermissions, err := a.checkPermissions(ctx, history, desired, before)
	if err != nil {
		return nil, err
	}
	if err := planner.Inspect(ctx, planned); err != nil {
		return nil, err
	}
	if err := a.checkGroups(ctx, planned); err != nil {
		return nil, err
	}
	onDefinitions, err := a.checkDefinitions(ctx, desired.Preflight, planned)
	if err != nil {
		return nil, err
	}
	err = planner.DryRun(ctx, planned)
	return slices.Concat(onPermissions, onDefinitions, planned.Replacements()), err
}
