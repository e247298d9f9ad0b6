package main

import (
	"context"

	"github.com/clusterextensions/operator-controller/internal/applier"
	"github.com/clusterextensions/operator-controller/internal/controller"
)

// releases is the applier as the controller sees it.
type releases struct{ applier *applier.Applier }

var _ controller.Releases = releases{}

func (r releases) Observe(ctx context.Context, owner controller.Owner) (controller.Installation, error) {
	state, err := r.applier.Observe(ctx, applier.Extension(owner))
	if err != nil {
		return controller.Installation{}, err
	}
	installation := controller.Installation{Unfinished: state.Unfinished}
	if state.Installed != nil {
		installed := controller.Installed(*state.Installed)
		installation.Installed = &installed
	}
	return installation, nil
}

func (r releases) Apply(ctx context.Context, owner controller.Owner, revision controller.Revision) (controller.Applied, error) {
	result, err := r.applier.Apply(ctx, applier.Extension(owner), applier.Desired{
		Revision:    applier.Revision(revision.Installed),
		Objects:     revision.Objects,
		Annotations: revision.Annotations,
	})
	return appliedFrom(result), err
}

func (r releases) Repair(ctx context.Context, owner controller.Owner) (controller.Applied, error) {
	result, err := r.applier.Repair(ctx, applier.Extension(owner))
	return appliedFrom(result), err
}

func appliedFrom(result applier.Result) controller.Applied {
	return controller.Applied{Began: result.Began, RecheckAfter: result.RecheckAfter}
}
