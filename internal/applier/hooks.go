package applier

import (
	"context"
	"time"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// FinishHooks goes on with the hooks after the content of what is installed. It makes no request if
// none are due. It fails with [*installation.HookUnderwayError] and [*installation.HookFailedError].
func (a *Applier) FinishHooks(ctx context.Context, owner object.Owner, deadline time.Duration) error {
	known := a.memory(owner)
	if known.state != nil && !known.state.HooksDue {
		return nil
	}
	history, err := a.history(ctx, owner)
	if err != nil {
		return err
	}
	defer a.dropInvalid(history)
	defer history.Trim()
	hooks := known.due
	if known.due = nil; hooks == nil {
		if hooks, err = history.HooksAfter(ctx); err != nil || hooks == nil {
			return err
		}
	}
	if err := a.runHooks(ctx, owner, history, hooks, deadline); err != nil {
		if installation.IsHook(err) {
			known.due = hooks
		}
		return err
	}
	if err := history.SaveProgress(ctx, hooks.Revision, nil); err != nil {
		return err
	}
	known.state = nil // is read anew
	return nil
}

// DeleteHooks says which hooks run when an extension is deleted. It makes no request if it is known that
// there are none, and reads the record at most.
func (a *Applier) DeleteHooks(ctx context.Context, owner object.Owner) (installation.DeleteHooks, error) {
	known := a.memory(owner)
	if known.state != nil && !known.state.DeleteHooks || known.state == nil && known.noDeleteHooks {
		return installation.DeleteHooks{}, nil
	}
	history, err := a.histories.AsIs(ctx, owner)
	if err != nil {
		return installation.DeleteHooks{}, err
	}
	before, err := history.DeleteHooks(ctx, false)
	if err != nil {
		return installation.DeleteHooks{}, err
	}
	after, err := history.DeleteHooks(ctx, true)
	if err != nil {
		return installation.DeleteHooks{}, err
	}
	found := installation.DeleteHooks{Before: before != nil, After: after != nil, ContentGoes: after != nil && after.Progress.After && after.IsBegun}
	known.noDeleteHooks = !found.Before && !found.After
	return found, nil
}

// RunDeleteHooks goes on with the hooks before the deletion of an extension, or those after that of its
// content, if there are any. A hook that runs for another revision is given up first. It fails as
// [Applier.FinishHooks], with [*object.RightsError], and with [object.ErrOwnerGone] if the content is to
// stay by now.
func (a *Applier) RunDeleteHooks(ctx context.Context, owner object.Owner, deadline time.Duration, after bool) error {
	history, err := a.histories.AsIs(ctx, owner)
	if err != nil {
		return err
	}
	hooks, err := history.DeleteHooks(ctx, after)
	if err != nil || hooks == nil {
		return err
	}
	begun, err := history.WaitingHooks(ctx)
	if err != nil {
		return err
	}
	if err := a.giveUp(ctx, owner, history, begun, deadline); err != nil {
		return object.AsRightsError(err)
	}
	return object.AsRightsError(a.runHooks(ctx, owner, history, hooks, deadline))
}

// runHooks goes on with hooks until all have succeeded, one has failed, or one is to be waited for. How
// far they have come is recorded before anything is deleted that would tell.
func (a *Applier) runHooks(ctx context.Context, owner object.Owner, history *release.History, hooks *release.Hooks, deadline time.Duration) error {
	run, err := a.newHookRun(owner, history, hooks, deadline)
	if err != nil {
		return err
	}
	for hooks.AreLeft() {
		if err := run.step(ctx); err != nil {
			return err
		}
	}
	return run.clean(ctx)
}

// AbandonHooks is for an extension that has come back to what is installed, while hooks before the
// content of another revision ran or rested: the one that runs is given up, and the record is
// closed. It makes no request if it is known that there are none.
func (a *Applier) AbandonHooks(ctx context.Context, owner object.Owner, deadline time.Duration) error {
	known := a.memory(owner)
	if known.state != nil && !known.state.HooksWait {
		return nil
	}
	history, err := a.history(ctx, owner)
	if err != nil {
		return err
	}
	defer a.dropInvalid(history)
	defer history.Trim()
	waiting, err := history.WaitingHooks(ctx)
	if err != nil || waiting == nil {
		return err
	}
	if err := a.giveUp(ctx, owner, history, waiting, deadline); err != nil {
		return err
	}
	known.begun, known.state = nil, nil // are read anew
	return history.GiveUp(ctx, waiting.Revision)
}

// giveUp deletes the object of the hook that runs for a revision that is not wanted any more. One that
// cannot go does not hold up others for longer than a hook may take.
func (a *Applier) giveUp(ctx context.Context, owner object.Owner, history *release.History, hooks *release.Hooks, deadline time.Duration) error {
	if hooks == nil || !hooks.AreLeft() {
		return nil
	}
	run, err := a.newHookRun(owner, history, hooks, deadline)
	if err != nil {
		return err
	}
	found, err := run.find(hooks.Progress.Done)
	if err != nil {
		return nil //nolint:nilerr // nobody serves its kind
	}
	live, err := found.get(ctx)
	if err != nil || live == nil || !owner.Controls(live) || !hook.IsAwaited(live) || run.cannotGo(live) {
		return err
	}
	return run.remove(ctx, found, live)
}

// giveUpOthers gives up the hook that runs for another revision than the wanted one.
func (a *Applier) giveUpOthers(ctx context.Context, owner object.Owner, history *release.History, desired installation.Desired) error {
	wanted, err := history.BegunHooks(ctx, desired.Revision)
	if err != nil || wanted != nil {
		return err
	}
	waiting, err := history.WaitingHooks(ctx)
	if err != nil {
		return err
	}
	return a.giveUp(ctx, owner, history, waiting, desired.HookDeadline)
}

// hooksBefore goes on with the hooks before the content of a revision that was begun.
func (a *Applier) hooksBefore(ctx context.Context, owner object.Owner, history *release.History, desired installation.Desired) error {
	hooks, err := history.BegunHooks(ctx, desired.Revision)
	if err != nil || hooks == nil {
		return err
	}
	return a.runBegun(ctx, owner, history, hooks, desired)
}

// hooksOfRecord runs the hooks before the content of the record that was just made.
func (a *Applier) hooksOfRecord(ctx context.Context, owner object.Owner, history *release.History, desired installation.Desired) error {
	hooks, err := history.RecordedHooks(ctx)
	if err != nil || hooks == nil {
		return err
	}
	return a.runBegun(ctx, owner, history, hooks, desired)
}

func (a *Applier) runBegun(ctx context.Context, owner object.Owner, history *release.History, hooks *release.Hooks, desired installation.Desired) error {
	err := a.runHooks(ctx, owner, history, hooks, desired.HookDeadline)
	if installation.IsHook(err) {
		a.memory(owner).begun = &begunHooks{of: desired.Revision, Hooks: hooks}
	}
	return err
}

// begunHooks are those before the content of a revision.
type begunHooks struct {
	*release.Hooks

	of installation.Revision
}

// AwaitHook fails while a hook before the content of a revision runs, or rests after a failure, as far
// as this process knows that: with [*installation.HookUnderwayError] and
// [*installation.HookFailedError]. It makes one request then, so that nothing is fetched, rendered or
// planned meanwhile. What the digest of the image is does not matter.
func (a *Applier) AwaitHook(ctx context.Context, owner object.Owner, revision installation.Revision, deadline time.Duration) error {
	known := a.memory(owner)
	if known.begun == nil {
		return nil
	}
	if revision.Digest = known.begun.of.Digest; revision.Image != known.begun.of.Image || !revision.IsMadeAs(known.begun.of) {
		known.begun = nil
		return nil
	}
	run, err := a.newHookRun(owner, nil, known.begun.Hooks, deadline)
	if err != nil {
		return err
	}
	if err := run.await(ctx); installation.IsHook(err) {
		return err
	}
	known.begun = nil // whoever goes on reads them
	return nil
}
