package image_test

import (
	"io/fs"
	"os"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
)

// fixture is a registry that answers for registry.test, and a puller for it.
type fixture struct {
	registry *testkit.Registry
	config   image.Config
	puller   *image.Puller
}

// newFixture starts a registry and a puller; edit may change its configuration.
func newFixture(t *testing.T, edit func(*image.Config)) *fixture {
	t.Helper()
	registry, config := imagetest.Start(t, "registry.test")
	if edit != nil {
		edit(&config)
	}
	f := &fixture{registry: registry, config: config}
	f.restart(t)
	return f
}

// restart replaces the puller by a new one on the same cache.
func (f *fixture) restart(t *testing.T) {
	t.Helper()
	puller, err := image.New(f.config)
	if err != nil {
		t.Fatal(err)
	}
	f.puller = puller
}

// push stores files as pkg:v1 and returns the digest.
func (f *fixture) push(t *testing.T, files fstest.MapFS, labels map[string]string) string {
	t.Helper()
	digest, err := f.registry.Push(t.Context(), "pkg:v1", files, labels)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

// pushLayers stores an image of gzip-compressed layers as pkg:v1.
func (f *fixture) pushLayers(t *testing.T, labels map[string]string, layers ...[]testkit.TarEntry) string {
	t.Helper()
	blobs := make([]testkit.Layer, 0, len(layers))
	for _, entries := range layers {
		archive, err := testkit.Tar(entries...)
		if err != nil {
			t.Fatal(err)
		}
		blobs = append(blobs, testkit.Layer{Blob: testkit.Gzip(archive)})
	}
	return f.pushBlobs(t, labels, blobs...)
}

func (f *fixture) pushBlobs(t *testing.T, labels map[string]string, layers ...testkit.Layer) string {
	t.Helper()
	digest, err := f.registry.PushLayers(t.Context(), "pkg:v1", labels, layers...)
	if err != nil {
		t.Fatal(err)
	}
	return digest
}

func (f *fixture) pull(t *testing.T, ref string, sel image.Selection) (*image.Image, error) {
	t.Helper()
	img, err := f.puller.Pull(t.Context(), image.Request{Ref: ref, Select: sel})
	if err == nil {
		t.Cleanup(img.Close)
	}
	return img, err
}

func (f *fixture) mustPull(t *testing.T, ref string, sel image.Selection) *image.Image {
	t.Helper()
	img, err := f.pull(t, ref, sel)
	if err != nil {
		t.Fatalf("Pull(%q) error = %v", ref, err)
	}
	return img
}

// wantCached checks how many entries the cache has, and that nothing else is
// on disk.
func (f *fixture) wantCached(t *testing.T, want int) {
	t.Helper()
	entries, err := os.ReadDir(f.config.Dir)
	if err != nil {
		t.Fatal(err)
	}
	if len(entries) != want {
		t.Errorf("the cache holds %v, want %d entries", entries, want)
	}
}

// wantFiles checks the names and the content of all files.
func wantFiles(t *testing.T, files fs.FS, want map[string]string) {
	t.Helper()
	got := map[string]string{}
	err := fs.WalkDir(files, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || entry.IsDir() {
			return err
		}
		data, err := fs.ReadFile(files, name)
		got[name] = string(data)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files (-want +got):\n%s", diff)
	}
}

func writeFile(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mapFS(files map[string]string) fstest.MapFS {
	tree := fstest.MapFS{}
	for name, content := range files {
		tree[name] = &fstest.MapFile{Data: []byte(content)}
	}
	return tree
}

func catalogLabel(dir string) map[string]string {
	return map[string]string{image.CatalogLabel: dir}
}
