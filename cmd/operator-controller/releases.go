package main

import (
	"context"
	"errors"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/applier"
	"github.com/clusterextensions/operator-controller/internal/applier/drift"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/bundleimage"
	"github.com/clusterextensions/operator-controller/internal/controller"
)

// releases is the applier as the controller sees it. What it says is installed,
// images are kept for.
type releases struct {
	applier *applier.Applier
	kept    *bundleimage.Kept
}

var (
	_ controller.Releases   = releases{}
	_ controller.Departures = releases{}
)

func (r releases) Observe(ctx context.Context, owner controller.Owner) (controller.Installation, error) {
	state, err := r.applier.Observe(ctx, object.Owner(owner))
	if err != nil {
		return controller.Installation{}, portError(err)
	}
	installation := controller.Installation{Unfinished: state.Unfinished}
	if state.Installed != nil {
		installed := controller.Installed(*state.Installed)
		installation.Installed = &installed
	}
	r.kept.Observed(ctx, owner.Name, installation.Installed)
	return installation, nil
}

func (r releases) Apply(ctx context.Context, owner controller.Owner, revision controller.Revision) (controller.Applied, error) {
	result, err := r.applier.Apply(ctx, object.Owner(owner), applier.Desired{
		Revision:    release.Revision(revision.Installed),
		Objects:     revision.Objects,
		Annotations: revision.Annotations,
		Preflight:   revision.Preflight,
		BeforeWrite: revision.BeforeWrite,
	})
	if err == nil {
		r.kept.Observed(ctx, owner.Name, &revision.Installed)
	}
	return appliedFrom(result), portError(err)
}

func (r releases) Repair(ctx context.Context, owner controller.Owner) (controller.Applied, error) {
	result, err := r.applier.Repair(ctx, object.Owner(owner))
	applied := appliedFrom(result)
	for key, change := range result.Changes {
		if change == plan.Unchanged {
			continue
		}
		applied.Repaired = append(applied.Repaired, key.String())
		if !slices.ContainsFunc(result.Flapping, func(c drift.Flapping) bool { return c.Object == key }) {
			applied.Restored = append(applied.Restored, key.String())
		}
	}
	slices.Sort(applied.Repaired)
	slices.Sort(applied.Restored)
	return applied, portError(err)
}

func (r releases) LetGo(ctx context.Context, owner controller.Owner) error {
	return r.applier.LetGo(ctx, object.Owner(owner))
}

func (r releases) Departed(extension string) { r.applier.Departed(extension) }

// forget drops what the process holds for an extension that is gone.
func (r releases) forget(ctx context.Context, extension string) {
	r.applier.Forget(extension)
	r.kept.Forget(ctx, extension)
}

// portError is an error of the applier as the controller knows it.
func portError(err error) error {
	if errors.Is(err, object.ErrOwnerGone) {
		return controller.ErrOwnerGone
	}
	return err
}

func appliedFrom(result applier.Result) controller.Applied {
	applied := controller.Applied{
		Began: result.Began, RecheckAfter: result.RecheckAfter, Unwatched: result.Unwatched,
		ReleaseBytes: result.ReleaseBytes, Notes: result.Notes,
	}
	for _, contested := range result.Flapping {
		applied.Contested = append(applied.Contested, contested.String())
	}
	return applied
}

func (r releases) Workloads(owner controller.Owner) ([]controller.Workload, bool) {
	found, seen := r.applier.Workloads(object.Owner(owner))
	workloads := make([]controller.Workload, 0, len(found))
	for _, workload := range found {
		workloads = append(workloads, controller.Workload{
			Name:       workload.Key.String(),
			Available:  workload.Available,
			RollingOut: workload.RollingOut,
			Stuck:      workload.Stuck,
			Reason:     workload.Reason,
		})
	}
	return workloads, seen
}

func (r releases) Depart(ctx context.Context, owner controller.Owner) (controller.Departure, error) {
	found, err := r.applier.Depart(ctx, object.Owner(owner))
	var departure controller.Departure
	for _, resources := range found.CustomResources {
		departure.CustomResources = append(departure.CustomResources, controller.CustomResources(resources))
	}
	for _, object := range found.Staying {
		departure.Staying = append(departure.Staying, object.String())
	}
	return departure, err
}

func (r releases) Remaining(ctx context.Context, owner controller.Owner) ([]string, error) {
	found, err := r.applier.Remaining(ctx, object.Owner(owner))
	texts := make([]string, 0, len(found))
	for _, remaining := range found {
		texts = append(texts, remaining.String())
	}
	return texts, err
}
