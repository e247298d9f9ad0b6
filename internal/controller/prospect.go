package controller

import (
	"context"
	"errors"
	"time"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

// prospectRetry is when it is tried again to find out what a pending upgrade would do.
const prospectRetry = 10 * time.Minute

// prospect is what an upgrade that waits for an approval would do.
type prospect struct {
	goal goal

	// summary is a line for people. If it says why nothing is known, it is tried again, at
	// the time of retry; else retry is zero.
	summary string
	retry   time.Time
}

// stands says whether a prospect is good for a goal.
func (p prospect) stands(toward goal, now time.Time) bool {
	return p.summary != "" && p.goal == toward && (p.retry.IsZero() || now.Before(p.retry))
}

// foresee finds out what the upgrade would do that waits for an approval, once for each target
// and generation. It decides nothing: what cannot be found out is said in its place. The last
// process may have said it already.
func (r *Reconciler) foresee(ctx context.Context, wanted Wanted, outcome *Outcome, ext *ocv1.ClusterExtension) {
	pending, name := outcome.Pending, wanted.Owner.Name
	if pending == nil || outcome.Installed == nil || pending.Config != nil {
		r.prospects.Delete(name)
		return
	}
	target := Target{Action: Upgrade, Bundle: pending.Bundle, Image: pending.Image, IsNamed: wanted.Image != ""}
	if target.IsNamed { // of which nothing else is installed, whatever its tag stands for by now
		target.Digest = pending.Digest
	}
	toward, now := goalOf(ext, target), r.Now()
	value, _ := r.prospects.Load(name)
	known, _ := value.(prospect)
	if value == nil && isSummarized(ext, pending) {
		known = prospect{goal: toward, summary: ext.Status.Pending.PlanSummary}
		r.prospects.Store(name, known)
	}
	if !known.stands(toward, now) {
		summary, err := r.summarize(ctx, wanted, *outcome, target)
		if outcome.Foreseeing = errors.Is(err, ErrFetching) || isQueued(err); outcome.Foreseeing || errors.Is(err, object.ErrOwnerGone) || ctx.Err() != nil {
			return
		}
		known = prospect{goal: toward, summary: summary}
		if err != nil {
			known.summary = excerpt.Line("what it would do is not known: "+err.Error(), maxText)
			known.retry = now.Add(prospectRetry)
		}
		r.prospects.Store(name, known)
	}
	outcome.PlanSummary = known.summary
	if !known.retry.IsZero() {
		outcome.RecheckAfter = sooner(outcome.RecheckAfter, known.retry.Sub(now))
	}
}

// isSummarized says that the status has the summary of what is pending, by the spec as it is.
func isSummarized(ext *ocv1.ClusterExtension, pending *PendingError) bool {
	known := ext.Status.Pending
	return known != nil && known.PlanSummary != "" && ext.Status.ObservedGeneration == ext.Generation &&
		known.Bundle.Name == pending.Bundle.Name && known.Bundle.Version == pending.Bundle.Version && known.Digest == pending.Digest
}

// summarize fails with [ErrFetching] while the image of the bundle is on its way, and with
// [turn.ErrWait] while it is not the turn of the extension: it is woken for either.
func (r *Reconciler) summarize(ctx context.Context, wanted Wanted, outcome Outcome, target Target) (string, error) {
	outcome.Target = target
	image := imageOf(target, outcome.Installed)
	files, err := r.fetch(ctx, wanted.Owner, image)
	if err != nil {
		return "", err
	}
	defer func() { r.done(wanted.Owner.Name, image, files, isQueued(err)) }()
	unpacked, err := r.unpack(ctx, files)
	if err != nil {
		return "", err
	}
	revision, err := r.build(ctx, wanted, &outcome, unpacked)
	if err != nil {
		return "", err
	}
	found, err := r.Releases.Foresee(ctx, wanted.Owner, revision)
	return preview.Summarize(preview.Facts{
		Owner: wanted.Owner, Trials: found.Trials, Conflicts: found.Conflicts, Missing: found.Missing, Gains: found.Gains,
		Verdict: found.Verdict, MaskEnv: true, Hooks: revision.Hooks,
		Installed: &preview.Bundle{Name: outcome.Installed.Bundle.Name, Version: outcome.Installed.Bundle.Version},
	}), err
}
