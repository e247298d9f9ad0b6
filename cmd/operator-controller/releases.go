package main

import (
	"context"

	"github.com/clusterextensions/operator-controller/internal/applier"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundleimage"
	"github.com/clusterextensions/operator-controller/internal/controller"
)

// releases is the applier. What it says is installed, images are kept for.
type releases struct {
	*applier.Applier

	images *bundleimage.Images
}

var (
	_ controller.Releases   = releases{}
	_ controller.Deletions  = releases{}
	_ controller.Uninstalls = releases{}
)

func (r releases) Observe(ctx context.Context, owner object.Owner) (installation.State, error) {
	state, err := r.Applier.Observe(ctx, owner)
	if err == nil {
		r.images.Kept.Observed(ctx, owner.Name, state.Installed)
	}
	return state, err
}

func (r releases) Apply(ctx context.Context, owner object.Owner, desired installation.Desired) (installation.Result, error) {
	result, err := r.Applier.Apply(ctx, owner, desired)
	if err == nil {
		r.images.Kept.Observed(ctx, owner.Name, &desired.Revision)
	}
	return result, err
}

// forget drops what the process holds for an extension that is gone.
func (r releases) forget(ctx context.Context, extension string) {
	r.Forget(extension)
	r.images.Forget(ctx, extension)
}
