package image_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	"github.com/clusterextensions/operator-controller/internal/diskspace"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// bundleBlocks is what a bundle of bundleOf takes: an entry with its approvals, a
// directory and a file.
const bundleBlocks = 4 + 16 + 1 + 10

// bundleOf has a file of ten blocks.
func bundleOf(letter string) fstest.MapFS {
	return mapFS(map[string]string{"manifests/x": strings.Repeat(letter, int(10*diskspace.Blocks(1)))})
}

// withSpace bounds a cache in blocks.
func withSpace(blocks int64) func(*image.Config) {
	return func(config *image.Config) {
		config.Space = diskspace.New(diskspace.Config{What: "images", Bytes: blocks * diskspace.Blocks(1)})
	}
}

func (f *fixture) isCached(t *testing.T, digest string) bool {
	t.Helper()
	_, err := os.Stat(filepath.Join(f.config.Dir, strings.ReplaceAll(digest, ":", "-")+"-bundle"))
	return err == nil
}

// TestCacheIsBounded: the image that nobody has used for longest makes place for
// another, and none that is in use. What does not fit is refused and leaves nothing.
func TestCacheIsBounded(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withSpace(2*bundleBlocks))
	digests := map[string]string{}
	pull := func(letter string) (*image.Image, error) {
		if digests[letter] == "" {
			digests[letter] = f.push(t, bundleOf(letter), nil)
		}
		return f.pull(t, "registry.test/pkg@"+digests[letter], image.BundleContent)
	}
	mustPull := func(letter string) *image.Image {
		t.Helper()
		img, err := pull(letter)
		if err != nil {
			t.Fatalf("%s: %v", letter, err)
		}
		return img
	}
	mustPull("a").Close()
	mustPull("b").Close()
	mustPull("a").Close()
	mustPull("c").Close()
	if !f.isCached(t, digests["a"]) || f.isCached(t, digests["b"]) {
		t.Error("it is not the least recently used one that is gone")
	}
	a, c := mustPull("a"), mustPull("c")
	_, err := pull("d")
	if full, ok := errors.AsType[*diskspace.FullError](err); !ok || full.What != "images" {
		t.Errorf("got %v, want a FullError", err)
	}
	f.wantCached(t, 2)
	wantFiles(t, a.Files, map[string]string{"manifests/x": string(bundleOf("a")["manifests/x"].Data)})
	c.Close()
	mustPull("d").Close()
	if !f.isCached(t, digests["a"]) || !f.isCached(t, digests["d"]) {
		t.Error("what was in use is gone")
	}
}

// TestRefusedImagesTakeNoSpace: what was written of them is gone.
func TestRefusedImagesTakeNoSpace(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withSpace(bundleBlocks))
	hostile := f.pushLayers(t, nil, []testkit.TarEntry{testkit.File("manifests/x", "x"), testkit.Symlink("manifests/l", "x")})
	large := f.push(t, mapFS(map[string]string{"manifests/x": strings.Repeat("x", int(bundleBlocks*diskspace.Blocks(1)))}), nil)
	for range 3 {
		if _, err := f.pull(t, "registry.test/pkg@"+hostile, image.BundleContent); !errors.Is(err, image.ErrContent) {
			t.Fatalf("got %v, want a link to be refused", err)
		}
		_, err := f.pull(t, "registry.test/pkg@"+large, image.BundleContent)
		if _, ok := errors.AsType[*diskspace.FullError](err); !ok {
			t.Fatalf("got %v, want a FullError", err)
		}
		f.wantCached(t, 0)
	}
	f.mustPull(t, "registry.test/pkg@"+f.push(t, bundleOf("a"), nil), image.BundleContent)
}

// TestCacheIsBoundedAfterARestart: what is there counts, and what is too much of it
// goes, the oldest first.
func TestCacheIsBoundedAfterARestart(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withSpace(3*bundleBlocks))
	var digests []string
	for i, letter := range []string{"a", "b", "c"} {
		digests = append(digests, f.push(t, bundleOf(letter), nil))
		f.mustPull(t, "registry.test/pkg@"+digests[i], image.BundleContent).Close()
		made := time.Unix(int64(1_000_000_000+(i+1)%3), 0)
		entry := filepath.Join(f.config.Dir, strings.ReplaceAll(digests[i], ":", "-")+"-bundle")
		if err := os.Chtimes(entry, made, made); err != nil {
			t.Fatal(err)
		}
	}
	withSpace(2 * bundleBlocks)(&f.config)
	f.restart(t)
	// c is the oldest, then a, then b.
	for i, want := range []bool{true, true, false} {
		if f.isCached(t, digests[i]) != want {
			t.Errorf("image %d is there: %t, want %t", i, !want, want)
		}
	}
	f.mustPull(t, "registry.test/pkg@"+digests[2], image.BundleContent).Close()
	if f.isCached(t, digests[0]) || !f.isCached(t, digests[1]) {
		t.Error("it is not the oldest one that is gone")
	}
}

// TestSlowerOfTwoGivesItsRoomBack: of one digest there is one entry, however many have
// written it at the same time.
func TestSlowerOfTwoGivesItsRoomBack(t *testing.T) {
	t.Parallel()
	f := newFixture(t, withSpace(2*bundleBlocks))
	d := f.push(t, bundleOf("a"), nil)
	if _, err := f.registry.Push(t.Context(), "slow:v1", bundleOf("a"), nil); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	f.registry.Use(testkit.Stall("/slow/blobs/", release))
	slow := make(chan error, 1)
	go func() {
		img, err := f.pull(t, "registry.test/slow@"+d, image.BundleContent)
		if err == nil {
			img.Close()
		}
		slow <- err
	}()
	for f.registry.Count("/slow/blobs/") == 0 {
		time.Sleep(time.Millisecond)
	}
	defer f.mustPull(t, "registry.test/pkg@"+d, image.BundleContent).Close()
	close(release)
	if err := <-slow; err != nil {
		t.Fatal(err)
	}
	f.wantCached(t, 1)
	f.mustPull(t, "registry.test/pkg@"+f.push(t, bundleOf("b"), nil), image.BundleContent).Close()
}
