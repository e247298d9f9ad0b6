package main

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/image"
)

// moveTimeout bounds the question whether a tag has moved, which nothing waits
// for but a report.
const moveTimeout = 10 * time.Second

// bundles is the image puller as the controller sees it.
type bundles struct {
	puller *image.Puller
	kept   *keptImages

	// credentials are those of the ServiceAccount of an extension, for one fetch.
	credentials func(controller.Owner) *accountCredentials
}

var _ controller.Bundles = &bundles{}

func (b *bundles) Fetch(ctx context.Context, owner controller.Owner, wanted controller.BundleImage) (controller.Files, error) {
	credentials := b.credentials(owner)
	defer credentials.remove(ctx)
	request := image.Request{
		Ref:      wanted.Ref,
		Select:   image.BundleContent,
		Digest:   digest.Digest(wanted.Digest),
		AuthFile: credentials.file,
	}
	pulled, err := b.puller.Pull(ctx, request)
	if err != nil {
		return controller.Files{}, credentials.explain(b.fetchError(ctx, request, err))
	}
	b.kept.fetched(ctx, owner.Name, pulled.Digest)
	return controller.Files{
		FS:     pulled.Files,
		Digest: pulled.Digest.String(),
		Moved:  b.moved(ctx, request),
		Close:  pulled.Close,
	}, nil
}

// moved asks whether a tag still stands for what it did. Not to know is no
// reason to fail: what is wanted is at hand.
func (b *bundles) moved(ctx context.Context, request image.Request) *controller.Moved {
	if request.Digest == "" || isPinned(request.Ref) {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	now, err := b.puller.Resolve(ctx, request)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("not known whether the image has moved under its tag", "image", request.Ref, "reason", err.Error())
		return nil
	}
	_, current, _ := strings.Cut(now, "@")
	if current == request.Digest.String() {
		return nil
	}
	return &controller.Moved{Image: request.Ref, From: request.Digest.String(), To: current}
}

// fetchError tells failures for ever from others. What is wrong with the content
// under a digest stays wrong; a tag can be moved to better content.
func (b *bundles) fetchError(ctx context.Context, request image.Request, err error) error {
	var unusable *image.ReferenceError
	switch {
	case errors.As(err, &unusable), isPinned(request.Ref) && errors.Is(err, image.ErrContent):
		return &controller.UnusableImageError{Image: request.Ref, Err: err}
	case errors.Is(err, image.ErrNotFound):
		if moved := b.moved(ctx, request); moved != nil {
			return &controller.MovedImageError{Moved: *moved}
		}
	}
	return err
}

func isPinned(ref string) bool { return strings.Contains(ref, "@") }
