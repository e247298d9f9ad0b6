// Package bundlepush stores a bundle in a registry: files, a repository -> the reference of
// the image by digest. The same files make the same image.
package bundlepush

import (
	"archive/tar"
	"bytes"
	"cmp"
	"context"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"path"
	"slices"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/realm"
)

// Target is where images go.
type Target struct {
	// Repository is a registry and a path in it, without a tag.
	Repository string
	// PlainHTTP says that the registry speaks no TLS. It need not for one on this machine.
	PlainHTTP bool
	// Realms are where the credentials of the registry may go besides its own host.
	Realms realm.Realms
	// Tag names the image besides its digest. If Tag is empty, the image gets a tag of its digest,
	// which no other image has.
	Tag string
}

// Content is a bundle or a chart to push.
type Content struct {
	// Files of the bundle; the files of a chart are below chart/.
	Files fs.FS

	// Archive is the packaged chart with these files, which is pushed unchanged. If Archive is nil,
	// the files are packed.
	Archive []byte

	// Provenance is the provenance file of Archive; nil if there is none.
	Provenance []byte
}

// parse checks what can be checked without the registry.
func (t Target) parse() (name.Repository, error) {
	options := []name.Option{name.StrictValidation}
	if t.PlainHTTP {
		options = append(options, name.Insecure)
	}
	return name.NewRepository(t.Repository, options...)
}

// Check reports an invalid repository or an invalid tag.
func (t Target) Check() error {
	repository, err := t.parse()
	if err != nil || t.Tag == "" {
		return err
	}
	_, err = name.NewTag(repository.Name()+":"+t.Tag, name.StrictValidation)
	return err
}

// Push stores the files of a bundle that are directly in its folders, or all files of a chart. It
// sends the credentials for the registry that are on this machine. It returns the reference of
// the image by digest.
func (t Target) Push(ctx context.Context, content Content) (ref string, err error) {
	repository, err := t.parse()
	if err != nil {
		return "", err
	}
	image, err := imageOf(content)
	if err != nil {
		return "", err
	}
	digest, err := image.Digest()
	if err != nil {
		return "", fmt.Errorf("making the image: %w", err)
	}
	options := []remote.Option{
		remote.WithContext(ctx), remote.WithAuthFromKeychain(authn.DefaultKeychain),
		remote.WithTransport(t.guard(repository, remote.DefaultTransport)),
	}
	tag := repository.Tag(cmp.Or(t.Tag, "try-"+digest.Hex))
	if err := remote.Write(tag, image, options...); err != nil {
		return "", fmt.Errorf("pushing to %s: %w", repository, err)
	}
	return repository.Digest(digest.String()).Name(), nil
}

// imageOf has one layer with all files, as of no time.
func imageOf(content Content) (v1.Image, error) {
	if bundle.IsChart(content.Files) {
		return chartImageOf(content)
	}
	contents, _, err := bundle.Contents(content.Files)
	if err != nil {
		return nil, err
	}
	archive, err := archiveOf("", contents)
	if err != nil {
		return nil, fmt.Errorf("packing the bundle: %w", err)
	}
	layer, err := tarball.LayerFromOpener(func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(archive)), nil })
	if err != nil {
		return nil, fmt.Errorf("packing the bundle: %w", err)
	}
	return mutate.AppendLayers(empty.Image, layer)
}

// archiveOf has the files below a folder, which may be "".
func archiveOf(folder string, contents map[string][]byte) ([]byte, error) {
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	for _, name := range slices.Sorted(maps.Keys(contents)) {
		const mode = 0o644
		if err := writer.WriteHeader(&tar.Header{Name: path.Join(folder, name), Mode: mode, Size: int64(len(contents[name]))}); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
		if _, err := writer.Write(contents[name]); err != nil {
			return nil, fmt.Errorf("%s: %w", name, err)
		}
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return archive.Bytes(), nil
}
