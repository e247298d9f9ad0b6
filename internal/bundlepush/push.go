// Package bundlepush stores a bundle in a registry: files, a repository -> the reference of
// the image by digest. The same files make the same image.
package bundlepush

import (
	"archive/tar"
	"bytes"
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
}

// parse checks what can be checked without the registry.
func (t Target) parse() (name.Repository, error) {
	options := []name.Option{name.StrictValidation}
	if t.PlainHTTP {
		options = append(options, name.Insecure)
	}
	return name.NewRepository(t.Repository, options...)
}

// Check says what is wrong with the name of a target.
func (t Target) Check() error {
	_, err := t.parse()
	return err
}

// Push stores the files of a bundle that are directly in its folders, or all of a chart, with the credentials that
// people have for registries on this machine. Its tag is one of this digest alone, so that no tag
// of anybody comes to stand for it. It gives the image by digest.
func (t Target) Push(ctx context.Context, files fs.FS) (ref string, err error) {
	repository, err := t.parse()
	if err != nil {
		return "", err
	}
	image, err := imageOf(files)
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
	if err := remote.Write(repository.Tag("try-"+digest.Hex), image, options...); err != nil {
		return "", fmt.Errorf("pushing to %s: %w", repository, err)
	}
	return repository.Digest(digest.String()).Name(), nil
}

// imageOf has one layer with all files, as of no time.
func imageOf(files fs.FS) (v1.Image, error) {
	if bundle.IsChart(files) {
		return chartImageOf(files)
	}
	contents, _, err := bundle.Contents(files)
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
