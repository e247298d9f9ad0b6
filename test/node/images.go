package node

import (
	"archive/tar"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
	"github.com/google/go-containerregistry/pkg/v1/types"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// errNoPlatform says that an image is not for machines like this one.
var errNoPlatform = errors.New("there is no image for linux/" + runtime.GOARCH)

// controllerImage is the image for this machine in an OCI layout, as make image writes
// it, or one of a program.
func controllerImage(path string) (v1.Image, error) {
	if info, err := os.Stat(path); err != nil || !info.IsDir() {
		return programImage(path)
	}
	index, err := layout.ImageIndexFromPath(path)
	if err != nil {
		return nil, fmt.Errorf("reading the image in %s: %w", path, err)
	}
	return imageOf(index)
}

// imageOf finds the image for this machine in an index, which may have others in it.
func imageOf(index v1.ImageIndex) (v1.Image, error) {
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading an index of images: %w", err)
	}
	here := v1.Platform{OS: "linux", Architecture: runtime.GOARCH}
	for _, found := range manifest.Manifests {
		switch {
		case found.MediaType.IsImage() && (found.Platform == nil || found.Platform.Satisfies(here)):
			return index.Image(found.Digest)
		case found.MediaType.IsIndex():
			inner, err := index.ImageIndex(found.Digest)
			if err != nil {
				return nil, fmt.Errorf("reading an index of images: %w", err)
			}
			if image, err := imageOf(inner); !errors.Is(err, errNoPlatform) {
				return image, err
			}
		}
	}
	return nil, errNoPlatform
}

// nobody is the user of every image.
const nobody = "65532"

// programImage is an image of one static program and nothing else, with variables of
// the environment as NAME=value.
func programImage(path string, variables ...string) (v1.Image, error) {
	layer, err := programLayer(path)
	if err != nil {
		return nil, err
	}
	image, err := mutate.AppendLayers(empty.Image, layer)
	if err != nil {
		return nil, fmt.Errorf("making an image of %s: %w", path, err)
	}
	config := v1.Config{Entrypoint: []string{"/" + filepath.Base(path)}, User: nobody + ":" + nobody, Env: variables}
	image, err = mutate.ConfigFile(image, withConfig(image, config))
	if err != nil {
		return nil, fmt.Errorf("making an image of %s: %w", path, err)
	}
	return image, nil
}

// withConfig keeps what the layers have put into the file.
func withConfig(image v1.Image, config v1.Config) *v1.ConfigFile {
	file, err := image.ConfigFile()
	if err != nil {
		file = &v1.ConfigFile{}
	}
	file = file.DeepCopy()
	file.OS, file.Architecture, file.Config = "linux", runtime.GOARCH, config
	return file
}

// programLayer is a layer with the program at its root, for everybody to run.
func programLayer(path string) (v1.Layer, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("reading a program: %w", err)
	}
	var archive bytes.Buffer
	writer := tar.NewWriter(&archive)
	header := &tar.Header{Name: filepath.Base(path), Mode: 0o755, Size: int64(len(content)), Typeflag: tar.TypeReg}
	if err := writer.WriteHeader(header); err != nil {
		return nil, fmt.Errorf("archiving %s: %w", path, err)
	}
	if _, err := writer.Write(content); err != nil {
		return nil, fmt.Errorf("archiving %s: %w", path, err)
	}
	if err := writer.Close(); err != nil {
		return nil, fmt.Errorf("archiving %s: %w", path, err)
	}
	// Pulled once, from the same machine: to compress it well would take longer.
	return tarball.LayerFromOpener(func() (io.ReadCloser, error) {
		return io.NopCloser(bytes.NewReader(archive.Bytes())), nil
	}, tarball.WithCompressionLevel(1))
}

// push stores an image under repository:tag, and gives its digest.
func push(ctx context.Context, registry *testkit.Registry, target string, image v1.Image) (string, error) {
	layers, err := image.Layers()
	if err != nil {
		return "", fmt.Errorf("pushing %s: %w", target, err)
	}
	for _, layer := range layers {
		if err := pushLayer(ctx, registry, target, layer); err != nil {
			return "", err
		}
	}
	config, err := image.RawConfigFile()
	if err != nil {
		return "", fmt.Errorf("pushing %s: %w", target, err)
	}
	manifest, err := image.RawManifest()
	if err != nil {
		return "", fmt.Errorf("pushing %s: %w", target, err)
	}
	kind, err := image.MediaType()
	if err != nil {
		return "", fmt.Errorf("pushing %s: %w", target, err)
	}
	if _, err := registry.PushBlob(ctx, target, string(types.OCIConfigJSON), config); err != nil {
		return "", err
	}
	return registry.PushManifest(ctx, target, string(kind), manifest)
}

func pushLayer(ctx context.Context, registry *testkit.Registry, target string, layer v1.Layer) error {
	content, err := layer.Compressed()
	if err != nil {
		return fmt.Errorf("pushing %s: %w", target, err)
	}
	blob, err := io.ReadAll(content)
	if err := errors.Join(err, content.Close()); err != nil {
		return fmt.Errorf("pushing %s: %w", target, err)
	}
	_, err = registry.PushBlob(ctx, target, string(types.OCILayer), blob)
	return err
}
