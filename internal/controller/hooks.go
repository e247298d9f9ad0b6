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

// waitFor notes the hook that runs.
func (o *Outcome) waitFor(underway *installation.HookUnderwayError) {
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
		outcome.waitFor(underway)
	}
}

// awaitsHook says that the way forward waits for a hook that runs, or that has failed and is not to
// be run again yet. So it does for one that comes after the content of what is installed, unless
// that has failed: another revision may mend it.
func (r *Reconciler) awaitsHook(ctx context.Context, wanted Wanted, outcome *Outcome) bool {
	if outcome.Installed != nil {
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
		outcome.waitFor(underway)
		return
	}
	if err != nil && outcome.Err == nil {
		outcome.Stage, outcome.Err = StageApply, err
	}
}

// deletion is what hooks of a chart make of the removal of an extension.
type deletion struct {
	installation.DeleteHooks

	// skipped says that none of them is run.
	skipped bool
}

// deletionOf says what hooks there are to run. They run as the ServiceAccount: if that is gone they are
// left out, which is told, as where the cluster does not wait for anything.
func (r *Reconciler) deletionOf(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted) (found deletion, err error) {
	config := ext.Spec.Uninstall
	found.skipped = config != nil && config.Hooks == ocv1.HooksUninstallPolicySkip
	if found.DeleteHooks, err = r.Uninstalls.DeleteHooks(ctx, wanted.Owner); found.skipped {
		return found, nil // they are not run, whatever there is
	}
	if err != nil || !found.Before && !found.After {
		return found, err
	}
	if isForeground(ext.Finalizers) {
		r.skipHooks(ext, "the cluster deletes everything at once, as the extension was deleted in the foreground")
		found.skipped = true
		return found, nil
	}
	err = r.serviceAccount(ctx, wanted.Owner)
	if _, isGone := errors.AsType[*MissingServiceAccountError](err); isGone {
		r.skipHooks(ext, fmt.Sprintf("ServiceAccount %q does not exist in namespace %q", wanted.Owner.ServiceAccount, wanted.Owner.Namespace))
		found.skipped = true
		return found, nil
	}
	return found, err
}

// deleteHooks runs the hooks before a deletion; or, when all else is gone, which it sees to, those after
// that. Where the ServiceAccount lacks the rights they are left out, which is told.
func (r *Reconciler) deleteHooks(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, hooks deletion, after bool) uninstallProgress {
	if hooks.skipped || after && !hooks.After || !after && !hooks.Before {
		return uninstallProgress{released: true}
	}
	if after {
		progress := r.deleteContent(ctx, ext, wanted)
		if !progress.released || r.removals.isHookless(ext.UID) {
			return progress
		}
	}
	return r.runDeleteHooks(ctx, ext, wanted, after)
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

func (r *Reconciler) runDeleteHooks(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, after bool) uninstallProgress {
	_, err := inTime(ctx, wanted.Owner, func(ctx context.Context, owner object.Owner) (struct{}, error) {
		return struct{}{}, r.Uninstalls.RunDeleteHooks(ctx, owner, wanted.HookDeadline, after)
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
		text := excerpt.Line(failed.Error(), maxText-maxPart) + "; " + nextHook + "; " + nextSkip
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
