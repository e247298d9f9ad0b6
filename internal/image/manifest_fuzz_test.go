package image

import (
	"errors"
	"io/fs"
	"strings"
	"testing"
	"unicode"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"
)

// FuzzManifest reads whatever a registry sends as a manifest of any type, or as
// the configuration of a catalog image: what is taken from it keeps the limits and
// the image's place, and every failure is the fault of the image.
func FuzzManifest(f *testing.F) {
	for _, mime := range []string{
		imagespec.MediaTypeImageManifest, imagespec.MediaTypeImageIndex,
		manifest.DockerV2Schema2MediaType, manifest.DockerV2ListMediaType, manifest.DockerV2Schema1MediaType, "application/json",
	} {
		f.Add([]byte(`{}`), mime)
	}
	limits := DefaultLimits(CatalogContent)
	limits.ManifestBytes, limits.Layers = 1<<14, 4
	sys := &types.SystemContext{OSChoice: "linux", ArchitectureChoice: "amd64"}
	f.Fuzz(func(t *testing.T, data []byte, mime string) {
		raw, err := newRawManifest(data, mime, "", limits.ManifestBytes)
		if err != nil {
			checkContentError(t, err)
			return
		}
		checkInstance(t, raw, sys)
		checkParts(t, raw, limits)
		checkCatalogDir(t, data)
	})
}

func checkInstance(t *testing.T, raw rawManifest, sys *types.SystemContext) {
	t.Helper()
	if !raw.isIndex() {
		return
	}
	chosen, err := raw.instance(sys)
	if err != nil {
		checkContentError(t, err)
		return
	}
	if err := chosen.Validate(); err != nil {
		t.Errorf("instance %q: %v", chosen, err)
	}
}

func checkParts(t *testing.T, raw rawManifest, limits Limits) {
	t.Helper()
	parts, err := raw.parts(limits)
	if err != nil {
		checkContentError(t, err)
		return
	}
	if raw.isIndex() || len(parts.layers) > limits.Layers {
		t.Errorf("%d layers of %q, want at most %d of an image", len(parts.layers), raw.mime, limits.Layers)
	}
	left := limits.CompressedBytes
	for _, layer := range parts.layers {
		if err := layer.Digest.Validate(); err != nil || layer.Size < 0 || layer.Size > left {
			t.Fatalf("layer of %d bytes with %d left, digest %q: %v", layer.Size, left, layer.Digest, err)
		}
		left -= layer.Size
	}
	if err := checkBlob(parts.config); err != nil {
		checkContentError(t, err)
	}
}

func checkCatalogDir(t *testing.T, config []byte) {
	t.Helper()
	dir, err := catalogDir(config)
	if err != nil {
		checkContentError(t, err)
		return
	}
	kept, root := catalogFilter(dir)
	if !fs.ValidPath(root) || !kept.includes(root) {
		t.Errorf("label %q leads to %q", dir, root)
	}
}

// checkContentError checks that err lies in the image, and says so in one line
// that is not too long.
func checkContentError(t *testing.T, err error) {
	t.Helper()
	text := err.Error()
	if !errors.Is(err, ErrContent) || len(text) > 2*maxTextBytes || strings.ContainsFunc(text, unicode.IsControl) {
		t.Errorf("error of %d bytes, %.200q, want a short ErrContent", len(text), text)
	}
}
