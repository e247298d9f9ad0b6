package main

import (
	"context"
	"errors"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/opencontainers/go-digest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/image"
)

// bundles is the image puller as the controller sees it. It keeps the image
// that each extension used last.
type bundles struct {
	puller *image.Puller

	mu   sync.Mutex
	used map[string]digest.Digest // by extension
}

var _ controller.Bundles = &bundles{}

func newBundles(puller *image.Puller) *bundles {
	return &bundles{puller: puller, used: map[string]digest.Digest{}}
}

func (b *bundles) Fetch(ctx context.Context, owner controller.Owner, ref string) (controller.Files, error) {
	pulled, err := b.puller.Pull(ctx, image.Request{Ref: ref, Select: image.BundleContent})
	if err != nil {
		return controller.Files{}, fetchError(ref, err)
	}
	b.mu.Lock()
	b.used[owner.Name] = pulled.Digest
	b.mu.Unlock()
	b.sweep(ctx)
	return controller.Files{FS: pulled.Files, Close: pulled.Close}, nil
}

// fetchError tells failures for ever from others. What is wrong with the content
// under a digest stays wrong; a tag can be moved to better content.
func fetchError(ref string, err error) error {
	var unusable *image.ReferenceError
	isPinned := strings.Contains(ref, "@")
	if errors.As(err, &unusable) || (isPinned && errors.Is(err, image.ErrContent)) {
		return &controller.UnusableImageError{Image: ref, Err: err}
	}
	return err
}

// forget lets go of the image of an extension that is gone.
func (b *bundles) forget(ctx context.Context, extension string) {
	b.mu.Lock()
	_, known := b.used[extension]
	delete(b.used, extension)
	b.mu.Unlock()
	if known {
		b.sweep(ctx)
	}
}

func (b *bundles) sweep(ctx context.Context) {
	b.mu.Lock()
	kept := slices.Collect(maps.Values(b.used))
	b.mu.Unlock()
	if err := b.puller.Sweep(func(d digest.Digest) bool { return slices.Contains(kept, d) }); err != nil {
		ctrl.LoggerFrom(ctx).Error(err, "unused images could not be deleted")
	}
}
