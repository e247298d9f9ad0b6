package controller

import (
	"context"
	"time"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// Stage is how far a pass came before it failed.
type Stage string

// The stages in their order. The empty stage is a pass that did not fail.
const (
	StageValidate Stage = "validate"
	StageObserve  Stage = "observe"
	StageResolve  Stage = "resolve"
	StageFetch    Stage = "fetch"
	StageRender   Stage = "render"
	StageApply    Stage = "apply"
	StageRepair   Stage = "repair"
)

// Outcome is all that a pass found out: what the status tells is made of it and
// of nothing else.
type Outcome struct {
	Observed Observed
	Target   Target

	// Installed is what is on the cluster after the pass; nil for nothing, or
	// when it could not be found out.
	Installed *Installed

	// Stage and Err say where the way forward ended. Err is nil when the world
	// is as wanted.
	Stage Stage
	Err   error

	// RepairErr says that the installed content could not be repaired.
	RepairErr error

	RecheckAfter time.Duration
}

// pass carries one extension forward as far as it goes.
func (r *Reconciler) pass(ctx context.Context, wanted Wanted, invalid error) Outcome {
	observed := r.observe(ctx, wanted)
	outcome := Outcome{
		Observed:  observed,
		Target:    decide(wanted, invalid, observed),
		Installed: observed.Installation.Installed,
	}
	outcome.Stage, outcome.Err = stageOf(outcome.Target, invalid, observed), outcome.Target.Err
	switch outcome.Target.Action {
	case None:
	case Keep:
		r.repair(ctx, wanted, &outcome)
	case Install, Upgrade:
		r.advance(ctx, wanted, &outcome)
	}
	return outcome
}

// stageOf says at which stage a target without a way forward was stopped.
func stageOf(target Target, invalid error, observed Observed) Stage {
	switch {
	case target.Err == nil:
		return ""
	case invalid == nil && observed.ServiceAccountErr != nil:
		return StageValidate
	case invalid == nil && observed.InstallationErr != nil:
		return StageObserve
	default:
		return StageResolve
	}
}

// advance installs or upgrades. When that fails before anything was written,
// what is installed is repaired instead.
func (r *Reconciler) advance(ctx context.Context, wanted Wanted, outcome *Outcome) {
	revision, stage, err := r.build(ctx, wanted, outcome.Target)
	if err != nil {
		outcome.Stage, outcome.Err = stage, err
		r.repair(ctx, wanted, outcome)
		return
	}
	applied, err := r.Releases.Apply(ctx, wanted.Owner, revision)
	if err != nil {
		outcome.Stage, outcome.Err = StageApply, err
		if !applied.Began {
			r.repair(ctx, wanted, outcome)
		}
		return
	}
	outcome.Installed = &revision.Installed
	outcome.RecheckAfter = applied.RecheckAfter
}

// build makes the objects of the bundle that is to be installed.
func (r *Reconciler) build(ctx context.Context, wanted Wanted, target Target) (Revision, Stage, error) {
	files, err := r.Bundles.Fetch(ctx, wanted.Owner, target.Image)
	if err != nil {
		return Revision{}, StageFetch, err
	}
	defer files.Close()
	content, err := bundle.Parse(files)
	if err != nil {
		return Revision{}, StageRender, err
	}
	config, err := bundle.ParseConfig(content, wanted.Owner.Namespace, wanted.Config)
	if err != nil {
		return Revision{}, StageRender, err
	}
	objects, err := bundle.Render(content, bundle.Options{
		InstallNamespace: wanted.Owner.Namespace,
		Config:           config,
		Certificates:     r.Certificates(),
	})
	if err != nil {
		return Revision{}, StageRender, err
	}
	return Revision{
		Installed:   Installed{Bundle: target.Bundle, Image: target.Image, Inputs: wanted.Inputs},
		Objects:     objects,
		Annotations: content.CSV.Annotations,
	}, "", nil
}

func (r *Reconciler) repair(ctx context.Context, wanted Wanted, outcome *Outcome) {
	if outcome.Installed == nil {
		return
	}
	applied, err := r.Releases.Repair(ctx, wanted.Owner)
	outcome.RecheckAfter = applied.RecheckAfter
	if err == nil {
		return
	}
	outcome.RepairErr = err
	if outcome.Err == nil {
		outcome.Stage, outcome.Err = StageRepair, err
	}
}
