package controller

import (
	"context"
	"errors"
	"fmt"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// messageSuspended is that of Suspended and Progressing.
const messageSuspended = "suspended: nothing of the content is written until spec.suspend is false"

// errSuspended ends a pass over an extension that was suspended in the middle of it.
var errSuspended = errors.New("the extension is suspended")

// Suspension is what is not done while an extension is suspended.
type Suspension struct {
	Since time.Time

	// Target is where a pass would go otherwise. Its error is of a choice that could not be
	// made.
	Target Target

	// Halfway says that content is between two revisions.
	Halfway bool
}

// suspend has a pass over a suspended extension stay where it is.
func (o *Outcome) suspend(ext *ocv1.ClusterExtension, now time.Time) {
	target, installed := o.Target, o.Installed
	o.Suspended = &Suspension{Since: suspendedSince(ext, now), Target: target, Halfway: o.Observed.Installation.Unfinished}
	o.Stage, o.Err = "", nil
	o.Target = Target{Action: None, Resolution: target.Resolution, Pending: target.Pending, NoOffer: target.NoOffer, IsNamed: target.IsNamed}
	if installed != nil {
		o.Target.Action, o.Target.Bundle, o.Target.Image = Keep, installed.Bundle, installed.Image
	}
}

// suspendedSince is as the status says, if it does; otherwise now, as it is stored.
func suspendedSince(ext *ocv1.ClusterExtension, now time.Time) time.Time {
	known := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeSuspended)
	if known == nil || known.Status != metav1.ConditionTrue {
		return now.Truncate(time.Second)
	}
	return known.LastTransitionTime.Time
}

// isSuspendedHalfway says that what a suspended extension is to have is not there, or that it
// has something else half-way.
func (o *Outcome) isSuspendedHalfway() bool {
	return o.Suspended != nil && (o.Installed == nil || o.Suspended.Halfway)
}

// suspendedText says since when nothing is written, and what would be.
func suspendedText(outcome Outcome) string {
	suspended := outcome.Suspended
	text := fmt.Sprintf("suspended since %s, so that nothing is written", suspended.Since.UTC().Format(time.RFC3339))
	if suspended.Halfway {
		text += "; an upgrade that was begun is left half-way"
	}
	target := suspended.Target
	to := textOf(target)
	isSame := outcome.Installed != nil && outcome.Installed.Bundle == target.Bundle
	switch {
	case target.Err != nil:
		chosen := outcome
		chosen.Stage, chosen.Err = StageResolve, target.Err
		return text + "; it could not go on: " + excerpt.Line(summaryOf(chosen), maxPart)
	case target.Action == Install:
		text += "; a resume installs " + to
	case target.Action == Upgrade && isSame:
		text += "; a resume applies " + to + " anew"
	case target.Action == Upgrade && !target.isWithheld():
		text += "; a resume upgrades to " + to
		if asksOperator(outcome.Installed, target) {
			text += ", unless the operator that is installed holds that"
		}
	}
	return text
}

// isSuspendedSince says that an extension was suspended after a pass has read it, and before
// the pass could be ended for that.
func (r *Reconciler) isSuspendedSince(ctx context.Context, ext *ocv1.ClusterExtension) bool {
	if ext.Spec.Suspend {
		return false
	}
	now := &ocv1.ClusterExtension{}
	err := r.Client.Get(ctx, client.ObjectKeyFromObject(ext), now)
	return err == nil && now.Spec.Suspend
}
