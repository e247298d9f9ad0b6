package main

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

// image is the one image of a layout, for one platform or for several.
type image struct {
	path       layout.Path
	index      v1.ImageIndex
	descriptor v1.Descriptor
}

func openImage(dir string) (*image, error) {
	path, err := layout.FromPath(dir)
	if err != nil {
		return nil, fmt.Errorf("opening %s: %w", dir, err)
	}
	index, err := path.ImageIndex()
	if err != nil {
		return nil, err
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(manifest.Manifests) != 1 {
		return nil, fmt.Errorf("%s has %d images, want 1", dir, len(manifest.Manifests))
	}
	return &image{path: path, index: index, descriptor: manifest.Manifests[0]}, nil
}

// call names the image, in the words of the specification and in those of containerd,
// which takes the name of an image that it imports from there. The digest of the image
// does not depend on its name.
func (i *image) call(name string) error {
	i.descriptor.Annotations = map[string]string{
		"io.containerd.image.name":          name,
		"org.opencontainers.image.ref.name": name,
	}
	manifest, err := i.index.IndexManifest()
	if err != nil {
		return err
	}
	manifest.Manifests = []v1.Descriptor{i.descriptor}
	text, err := json.MarshalIndent(manifest, "", "  ")
	if err != nil {
		return err
	}
	return i.path.WriteFile("index.json", text, 0o644)
}

// push pushes the image with all that it consists of, and returns it by its digest.
func (i *image) push(ctx context.Context, to string) (string, error) {
	reference, err := name.ParseReference(to)
	if err != nil {
		return "", err
	}
	content, err := i.content()
	if err != nil {
		return "", err
	}
	pusher, err := remote.NewPusher(remote.WithAuthFromKeychain(authn.DefaultKeychain), remote.WithContext(ctx))
	if err != nil {
		return "", err
	}
	if err := pusher.Push(ctx, reference, content); err != nil {
		return "", fmt.Errorf("pushing to %s: %w", reference, err)
	}
	return reference.Context().Digest(i.descriptor.Digest.String()).String(), nil
}

func (i *image) content() (remote.Taggable, error) {
	if i.descriptor.MediaType.IsIndex() {
		return i.index.ImageIndex(i.descriptor.Digest)
	}
	return i.index.Image(i.descriptor.Digest)
}
