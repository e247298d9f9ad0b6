package controller

import (
	"context"
	"errors"
	"fmt"

	corev1 "k8s.io/api/core/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

// waitsForHook says that nothing is amiss, and that a hook runs.
func (o *Outcome) waitsForHook() bool { return o.Err == nil && o.Hook != nil }

// hookText is what waits, and for which hook.
func (o *Outcome) hookText() string {
	name := fmt.Sprintf("%q", o.Target.Bundle.Name)
	if o.Target.Bundle.Name == "" {
		name = textOf(o.Target)
	}
	return excerpt.Line(name+" "+o.Hook.Error(), maxText)
}

// noteHook notes the hook that runs, and when to look at it again.
func (o *Outcome) noteHook(underway *installation.HookUnderwayError) {
	o.Hook = underway
	o.RecheckAfter = sooner(o.RecheckAfter, underway.RecheckAfter)
}

// stopAtHook ends the way forward where a hook before the content runs, or has failed. Nothing of
// the content was written, so that what is installed is repaired at once.
func (r *Reconciler) stopAtHook(ctx context.Context, wanted Wanted, outcome *Outcome, err error) {
	underway, isUnderway := errors.AsType[*installation.HookUnderwayError](err)
	if !isUnderway {
		outcome.Stage, outcome.Err = StageApply, err
	}
	r.restore(outcome, func() (installation.Result, error) { return r.Releases.Repair(ctx, wanted.Owner) })
	if isUnderway {
		outcome.noteHook(underway)
	}
}

// stopsForHook ends the way forward, before anything is fetched for it, while a hook runs, and says whether
// it has. The hooks after the content of what is installed come first. One of these that has failed ends
// nothing, since another revision may mend it; one before the content of the target does until it is to be run
// again. When the target is begun, hooks of what is installed are not run any more.
func (r *Reconciler) stopsForHook(ctx context.Context, wanted Wanted, outcome *Outcome) bool {
	observed := outcome.Observed.Installation
	if outcome.Installed != nil && !observed.Unfinished && !observed.HooksWait {
		underway, isUnderway := errors.AsType[*installation.HookUnderwayError](r.Releases.FinishHooks(ctx, wanted.Owner, wanted.HookDeadline))
		if isUnderway {
			r.stopAtHook(ctx, wanted, outcome, underway)
			return true
		}
	}
	target := outcome.Target
	revision := installation.Revision{Bundle: target.Bundle, Image: target.Image, Inputs: wanted.Inputs}
	err := r.Releases.AwaitHook(ctx, wanted.Owner, revision, wanted.HookDeadline)
	if err != nil {
		r.stopAtHook(ctx, wanted, outcome, err)
	}
	return err != nil
}

// abandonHooks gives up the hooks of another revision, when what is installed is what is wanted again.
func (r *Reconciler) abandonHooks(ctx context.Context, wanted Wanted, outcome *Outcome) {
	if !outcome.Observed.Installation.HooksWait || wanted.Suspended {
		return
	}
	err := r.Releases.AbandonHooks(ctx, wanted.Owner, wanted.HookDeadline)
	if underway, ok := errors.AsType[*installation.HookUnderwayError](err); ok {
		outcome.RecheckAfter = sooner(outcome.RecheckAfter, underway.RecheckAfter)
		return
	}
	if err != nil && outcome.Err == nil {
		outcome.Stage, outcome.Err = StageRepair, err
	}
}

// finishHooks goes on with the hooks after the content of what is installed, if nothing else is amiss
// with it.
func (r *Reconciler) finishHooks(ctx context.Context, wanted Wanted, outcome *Outcome) {
	if outcome.Installed == nil || outcome.RepairErr != nil || outcome.Waiting {
		return
	}
	err := r.Releases.FinishHooks(ctx, wanted.Owner, wanted.HookDeadline)
	if underway, ok := errors.AsType[*installation.HookUnderwayError](err); ok {
		outcome.noteHook(underway)
		return
	}
	if err != nil && outcome.Err == nil {
		outcome.Stage, outcome.Err = StageApply, err
	}
}

// deletionHooks are those that a chart has for the deletion of an extension.
type deletionHooks struct {
	installation.DeletionHooks

	// skipped says that none of them is run.
	skipped bool
}

// deletionHooksOf says what hooks there are to run. They run as the ServiceAccount: if that is gone they are
// left out, which is told, as where the cluster does not wait for anything.
func (r *Reconciler) deletionHooksOf(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted) (deletionHooks, error) {
	recorded, err := r.Uninstalls.DeletionHooks(ctx, wanted.Owner)
	hooks := deletionHooks{DeletionHooks: recorded}
	if config := ext.Spec.Uninstall; config != nil && config.Hooks == ocv1.HooksUninstallPolicySkip {
		hooks.skipped = true
		return hooks, nil // also where it is not known which there are
	}
	if err != nil || !hooks.Before && !hooks.After {
		return hooks, err
	}
	if isForeground(ext.Finalizers) {
		r.skipHooks(ext, "the cluster deletes everything at once, as the extension was deleted in the foreground")
		hooks.skipped = true
		return hooks, nil
	}
	err = r.serviceAccount(ctx, wanted.Owner)
	if _, isGone := errors.AsType[*MissingServiceAccountError](err); isGone {
		r.skipHooks(ext, fmt.Sprintf("ServiceAccount %q does not exist in namespace %q", wanted.Owner.ServiceAccount, wanted.Owner.Namespace))
		hooks.skipped = true
		return hooks, nil
	}
	return hooks, err
}

// beginWithHooks runs the hooks before a deletion.
func (r *Reconciler) beginWithHooks(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, hooks deletionHooks) uninstallProgress {
	if hooks.skipped || !hooks.Before {
		return uninstallProgress{released: true}
	}
	return r.runDeletionHooks(ctx, ext, wanted, hook.PreDelete)
}

// endWithHooks runs the hooks after a deletion. Otherwise than without them, all content has to be gone
// before the extension is, which it sees to. It runs none if that has shown that the ServiceAccount lacks the
// rights.
func (r *Reconciler) endWithHooks(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, hooks deletionHooks) uninstallProgress {
	if hooks.skipped || !hooks.After {
		return uninstallProgress{released: true}
	}
	progress := r.deleteContent(ctx, ext, wanted)
	if !progress.released || r.removals.isHookless(ext.UID) {
		return progress
	}
	return r.runDeletionHooks(ctx, ext, wanted, hook.PostDelete)
}

// deleteContent has everything go before the hooks that run after that.
func (r *Reconciler) deleteContent(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted) uninstallProgress {
	left, err := inTime(ctx, wanted.Owner, r.Uninstalls.DeleteContent)
	const waiting = "being deleted, which waits until its content is gone, for the hooks after that"
	if err == nil && len(left) > 0 {
		return r.waitsFor(ext, waiting+": "+excerpt.Of(left, maxList))
	}
	return r.hooksEnd(ext, err, waiting, "the content is deleted")
}

// runDeletionHooks goes on with the hooks of an event. Where the ServiceAccount lacks the rights they are left
// out, which is told.
func (r *Reconciler) runDeletionHooks(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, event hook.Event) uninstallProgress {
	_, err := inTime(ctx, wanted.Owner, func(ctx context.Context, owner object.Owner) (struct{}, error) {
		return struct{}{}, r.Uninstalls.RunDeletionHooks(ctx, owner, event, wanted.HookDeadline)
	})
	underway, isUnderway := errors.AsType[*installation.HookUnderwayError](err)
	failed, hasFailed := errors.AsType[*installation.HookFailedError](err)
	switch {
	case isUnderway && underway.Going && !r.isPatient(ext):
		text := excerpt.Line("deletion "+underway.Error(), maxText-maxPart) + "; " + nextSkip
		return uninstallProgress{reason: ocv1.ReasonDeletionBlocked, text: text, wait: uninstallRetry}
	case isUnderway:
		return uninstallProgress{reason: ocv1.ReasonTerminating, text: "being deleted, which " + underway.Error(), wait: underway.RecheckAfter}
	case hasFailed:
		text := excerpt.Line(failed.Error(), maxText-maxPart) + "; " + failed.Next + "; " + nextSkip
		return uninstallProgress{reason: ocv1.ReasonDeletionBlocked, text: text, wait: min(failed.RetryIn, hookInterval)}
	}
	return r.hooksEnd(ext, err, "being deleted, which waits for its hooks", "hooks are run")
}

// nextSkip is how a deletion goes on without its hooks.
const nextSkip = "to go on without, set spec.uninstall.hooks to Skip"

// hooksEnd is what comes of a part of a deletion that hooks want, which has come to its end, or to an
// error that is not about hooks. What is installed is not repaired: it may be about to go.
func (r *Reconciler) hooksEnd(ext *ocv1.ClusterExtension, err error, waiting, what string) uninstallProgress {
	_, lacksRights := errors.AsType[*object.RightsError](err)
	switch {
	case err == nil:
		return uninstallProgress{released: true}
	case errors.Is(err, object.ErrOwnerGone):
		return r.decidedAnew(ext, waiting)
	case lacksRights:
		r.skipHooks(ext, err.Error())
		return uninstallProgress{released: true}
	}
	text := excerpt.Line(failedUninstallText(what, err), maxText-maxPart) + "; " + nextSkip
	return uninstallProgress{reason: ocv1.ReasonDeletionBlocked, text: text, wait: uninstallRetry}
}

// skipHooks tells once that hooks are not run.
func (r *Reconciler) skipHooks(ext *ocv1.ClusterExtension, why string) {
	if r.removals.skipsHooks(ext.UID) {
		return
	}
	note := fmt.Sprintf("the hooks of the chart for its deletion are not run: %s", excerpt.Line(why, maxPart))
	r.emit(ext, &transition{kind: corev1.EventTypeWarning, reason: eventHooksSkipped, note: note})
}
