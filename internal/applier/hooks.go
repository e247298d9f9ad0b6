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
	hooks := known.hooksAfter
	if known.hooksAfter = nil; hooks == nil {
		if hooks, err = history.HooksAfter(ctx); err != nil || hooks == nil {
			return err
		}
	}
	if err := a.runHooks(ctx, owner, history, hooks, deadline); err != nil {
		if installation.IsHook(err) {
			known.hooksAfter = hooks
		}
		return err
	}
	if err := history.SaveProgress(ctx, hooks.Revision, nil); err != nil {
		return err
	}
	known.state = nil // is read anew
	return nil
}

// DeletionHooks says which hooks run when an extension is deleted. It makes no request if it is known that
// there are none, and reads the record at most.
func (a *Applier) DeletionHooks(ctx context.Context, owner object.Owner) (installation.DeletionHooks, error) {
	known := a.memory(owner)
	if known.state != nil && !known.state.DeletionHooks || known.state == nil && known.noDeletionHooks {
		return installation.DeletionHooks{}, nil
	}
	history, err := a.histories.AsIs(ctx, owner)
	if err != nil {
		return installation.DeletionHooks{}, err
	}
	before, err := history.DeletionHooks(ctx, hook.PreDelete)
	if err != nil {
		return installation.DeletionHooks{}, err
	}
	after, err := history.DeletionHooks(ctx, hook.PostDelete)
	if err != nil {
		return installation.DeletionHooks{}, err
	}
	found := installation.DeletionHooks{Before: before != nil, After: after != nil, ContentGoes: after != nil && after.IsRecorded}
	known.noDeletionHooks = !found.Before && !found.After
	return found, nil
}

// RunDeletionHooks goes on with the hooks at an event of the deletion of an extension, if there are any. A
// hook that runs for another revision is given up first. It fails as [Applier.FinishHooks], with
// [*object.RightsError], and with [object.ErrOwnerGone] if the content is to stay by now.
func (a *Applier) RunDeletionHooks(ctx context.Context, owner object.Owner, event hook.Event, deadline time.Duration) error {
	history, err := a.histories.AsIs(ctx, owner)
	if err != nil {
		return err
	}
	hooks, err := history.DeletionHooks(ctx, event)
	if err != nil || hooks == nil {
		return err
	}
	others, err := history.HooksBefore(ctx)
	if err != nil {
		return err
	}
	if err := a.giveUp(ctx, owner, history, others, deadline); err != nil {
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
	hooks, err := history.HooksBefore(ctx)
	if err != nil || !hooks.AreLeft() {
		return err
	}
	if err := a.giveUp(ctx, owner, history, hooks, deadline); err != nil {
		return err
	}
	known.hooksBefore, known.state = nil, nil // are read anew
	return history.GiveUp(ctx, hooks)
}

// giveUp deletes the object of the hook that runs for a revision that is not wanted any more, if any of its
// hooks are left. One that cannot go does not hold up others for longer than a hook may take.
func (a *Applier) giveUp(ctx context.Context, owner object.Owner, history *release.History, hooks *release.Hooks, deadline time.Duration) error {
	if !hooks.AreLeft() {
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
	if err != nil || live == nil || !run.isMade(found, live) || !hook.IsAwaited(live) || run.cannotGo(live) {
		return err
	}
	return run.remove(ctx, found, live)
}

// takeUpHooks goes on with the hooks before the content of a revision that was begun. One that runs for
// another revision than the desired one is given up.
func (a *Applier) takeUpHooks(ctx context.Context, owner object.Owner, history *release.History, desired installation.Desired) error {
	hooks, err := history.HooksBefore(ctx)
	switch {
	case err != nil || hooks == nil:
		return err
	case !hooks.MadeAs.IsMadeAs(desired.Revision):
		return a.giveUp(ctx, owner, history, hooks, desired.HookDeadline)
	}
	return a.runHooksBefore(ctx, owner, history, hooks, desired)
}

// runRecordedHooks runs the hooks before the content of the record that was just made: what that was made
// as needs no second look.
func (a *Applier) runRecordedHooks(ctx context.Context, owner object.Owner, history *release.History, desired installation.Desired) error {
	hooks, err := history.HooksBefore(ctx)
	if err != nil || hooks == nil {
		return err
	}
	return a.runHooksBefore(ctx, owner, history, hooks, desired)
}

// runHooksBefore remembers hooks that are to be waited for, so that [Applier.AwaitHook] finds them.
func (a *Applier) runHooksBefore(ctx context.Context, owner object.Owner, history *release.History, hooks *release.Hooks, desired installation.Desired) error {
	err := a.runHooks(ctx, owner, history, hooks, desired.HookDeadline)
	if installation.IsHook(err) {
		a.memory(owner).hooksBefore = &hooksBefore{of: desired.Revision, Hooks: hooks}
	}
	return err
}

// hooksBefore are those before the content of a revision, as it was desired: its record may have the image
// by another reference.
type hooksBefore struct {
	*release.Hooks

	of installation.Revision
}

// AwaitHook fails while a hook before the content of a revision runs, or rests after a failure, as far
// as this process knows that: with [*installation.HookUnderwayError] and
// [*installation.HookFailedError]. It makes one request then, so that nothing is fetched, rendered or
// planned meanwhile. The digest of the image, which is not known before that is fetched, does not matter.
func (a *Applier) AwaitHook(ctx context.Context, owner object.Owner, revision installation.Revision, deadline time.Duration) error {
	known := a.memory(owner)
	if known.hooksBefore == nil {
		return nil
	}
	of := known.hooksBefore.of
	if revision.Digest = of.Digest; revision.Image != of.Image || !revision.IsMadeAs(of) {
		known.hooksBefore = nil
		return nil
	}
	run, err := a.newHookRun(owner, nil, known.hooksBefore.Hooks, deadline) // which records nothing, as it only awaits
	if err != nil {
		return err
	}
	if err := run.await(ctx); installation.IsHook(err) {
		return err
	}
	known.hooksBefore = nil // whoever goes on reads them
	return nil
}
