package image_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// TestCorpus pulls every real bundle as an image: none is refused, and every
// file arrives as it was.
func TestCorpus(t *testing.T) {
	t.Parallel()
	bundles, err := filepath.Glob(filepath.Join(testkit.Corpus(t), "bundles", "*", "*"))
	if err != nil || len(bundles) == 0 {
		t.Fatalf("no bundles in the corpus (%v)", err)
	}
	f := newFixture(t, nil)
	for _, bundle := range testkit.Sample(bundles) {
		files := os.DirFS(bundle)
		digest, err := f.registry.Push(t.Context(), "corpus", files, nil)
		if err != nil {
			t.Fatal(err)
		}
		img, err := f.pull(t, "registry.test/corpus@"+digest, image.BundleContent)
		if err != nil {
			t.Errorf("%s: %v", bundle, err)
			continue
		}
		wantFiles(t, img.Files, keptFiles(t, files))
		img.Close()
	}
}

// keptFiles returns what a pull has to keep of a bundle.
func keptFiles(t *testing.T, files fs.FS) map[string]string {
	t.Helper()
	kept := map[string]string{}
	for _, dir := range []string{"manifests", "metadata"} {
		err := fs.WalkDir(files, dir, func(name string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			body, err := fs.ReadFile(files, name)
			kept[name] = string(body)
			return err
		})
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			t.Fatal(err)
		}
	}
	return kept
}
