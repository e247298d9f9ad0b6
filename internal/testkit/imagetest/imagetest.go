// Package imagetest starts a registry, and says how to pull from it in a way that does
// not depend on what this machine is configured to do. It reads the layers of images that were pushed.
package imagetest

import (
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// AcceptAnything is a signature policy.
const AcceptAnything = `{"default":[{"type":"insecureAcceptAnything"}]}`

// Start starts a registry that answers for the given prefixes too, and gives the
// configuration of who pulls from it, with files of its own in place of all of this
// machine.
func Start(tb testing.TB, prefixes ...string) (*testkit.Registry, image.Config) {
	tb.Helper()
	registry, err := testkit.StartRegistry()
	if err != nil {
		tb.Fatal(err)
	}
	return registry, Configure(tb, registry, prefixes...)
}

// Configure is [Start] for a registry that runs, and closes it at the end.
func Configure(tb testing.TB, registry *testkit.Registry, prefixes ...string) image.Config {
	tb.Helper()
	tb.Cleanup(func() {
		if err := registry.Close(); err != nil {
			tb.Error(err)
		}
	})
	dir := tb.TempDir()
	config := image.Config{
		Dir:            filepath.Join(dir, "cache"),
		AuthFile:       filepath.Join(dir, "auth.json"),
		PolicyFile:     filepath.Join(dir, "policy.json"),
		RegistriesConf: filepath.Join(dir, "registries.conf"),
		RegistriesDir:  filepath.Join(dir, "registries.d"),
	}
	for path, content := range map[string]string{config.AuthFile: "{}", config.PolicyFile: AcceptAnything} {
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			tb.Fatal(err)
		}
	}
	if err := registry.WriteRegistriesConf(config.RegistriesConf, prefixes...); err != nil {
		tb.Fatal(err)
	}
	return config
}

// Layers returns the bytes of the layers of a pushed image, by their media types. The layers are in the
// order of their digests, in which Helm pushes them.
func Layers(tb testing.TB, ref string) map[string][]byte {
	tb.Helper()
	parsed, err := name.ParseReference(ref)
	if err != nil {
		tb.Fatal(err)
	}
	pushed, err := remote.Image(parsed)
	if err != nil {
		tb.Fatal(err)
	}
	manifest, err := pushed.Manifest()
	if err != nil {
		tb.Fatal(err)
	}
	byDigest := func(a, b v1.Descriptor) int { return strings.Compare(a.Digest.String(), b.Digest.String()) }
	if !slices.IsSortedFunc(manifest.Layers, byDigest) {
		tb.Errorf("layers %v are not in the order of their digests", manifest.Layers)
	}
	layers := map[string][]byte{}
	for _, descriptor := range manifest.Layers {
		layer, err := pushed.LayerByDigest(descriptor.Digest)
		if err != nil {
			tb.Fatal(err)
		}
		content, err := layer.Compressed()
		if err != nil {
			tb.Fatal(err)
		}
		if layers[string(descriptor.MediaType)], err = io.ReadAll(content); err != nil {
			tb.Fatal(err)
		}
		content.Close()
	}
	return layers
}
