package bundleimage

import (
	"context"

	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/verdict"
)

// Verdict implements [controller.Bundles].
func (i *Images) Verdict(ctx context.Context, owner object.Owner, wanted controller.BundleImage) (imagepolicy.Verdict, bool, error) {
	request := image.Request{Ref: wanted.Ref, Select: image.BundleContent, Digest: digest.Digest(wanted.Digest)}
	return i.Verdicts.Of(ctx, verdict.InUse{
		Who: owner.Name, Author: owner.Namespace, Image: request,
		Verify: func(ctx context.Context) error { return i.verify(ctx, owner, request) },
	})
}

// verify asks the registry. What it says is known to the puller afterwards.
func (i *Images) verify(ctx context.Context, owner object.Owner, request image.Request) error {
	credentials := i.credentials(owner)
	defer credentials.remove(ctx)
	request.AuthFile = credentials.file
	_, err := i.puller.Verify(ctx, request)
	return credentials.explain(err)
}
