package image

import (
	"archive/tar"
	"bytes"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// FuzzUntar applies two hostile layers to a directory: whatever they hold,
// nothing outside changes, what is kept is files and directories within the
// selection and the limits, and the failures are of the kinds promised.
func FuzzUntar(f *testing.F) {
	seeds := [][]testkit.TarEntry{
		{testkit.Dir("manifests/"), testkit.File("manifests/a", "content"), testkit.File("metadata/b/c", "x")},
		{testkit.File("manifests/.wh.a", ""), testkit.File(".wh..wh..opq", ""), testkit.File("manifests/a", "new")},
		{testkit.Symlink("manifests/l", "/"), testkit.File("manifests/l/x", "x")},
		{testkit.File("../x", "x"), testkit.File("/manifests/../../x", "x")},
		{{Header: tar.Header{Name: "manifests/fifo", Typeflag: tar.TypeFifo}}},
		{testkit.File("manifests/"+strings.Repeat("d/", 40)+"x", "deep"), testkit.File(strings.Repeat("n", 300), "long")},
	}
	for _, seed := range seeds {
		archive, err := testkit.Tar(seed...)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(archive, testkit.Gzip(archive))
	}
	f.Fuzz(func(t *testing.T, lower, upper []byte) {
		outside := t.TempDir()
		if err := os.WriteFile(filepath.Join(outside, "witness"), []byte("intact"), fileMode); err != nil {
			t.Fatal(err)
		}
		inside := filepath.Join(outside, "tree")
		if err := os.Mkdir(inside, dirMode); err != nil {
			t.Fatal(err)
		}
		root, err := os.OpenRoot(inside)
		if err != nil {
			t.Fatal(err)
		}
		defer root.Close()
		u := newUnpacker(root, bundleFilter(), fuzzLimits, func(int64) error { return nil })
		for _, layer := range [][]byte{lower, upper} {
			if err := u.apply(t.Context(), bytes.NewReader(layer)); err != nil && !errors.Is(err, ErrContent) {
				t.Fatalf("apply error = %v, want an ErrContent", err)
			}
		}
		checkContained(t, outside)
		checkKept(t, root.FS())
	})
}

var fuzzLimits = Limits{ExpandedBytes: 1 << 20, ContentBytes: 1 << 18, FileBytes: 1 << 16, KeptEntries: 200}.or(DefaultLimits(BundleContent))

func checkContained(t *testing.T, outside string) {
	t.Helper()
	entries, err := os.ReadDir(outside)
	if err != nil || len(entries) != 2 {
		t.Fatalf("outside the tree: %v, %v", entries, err)
	}
	witness, err := os.ReadFile(filepath.Join(outside, "witness"))
	if err != nil || string(witness) != "intact" {
		t.Fatalf("witness = %q, %v", witness, err)
	}
}

func checkKept(t *testing.T, tree fs.FS) {
	t.Helper()
	kept, size := 0, int64(0)
	err := fs.WalkDir(tree, ".", func(name string, entry fs.DirEntry, err error) error {
		if err != nil || name == "." {
			return err
		}
		if !fs.ValidPath(name) || !bundleFilter().includes(name) || !entry.IsDir() && !entry.Type().IsRegular() {
			t.Errorf("kept %q of type %v", name, entry.Type())
		}
		info, err := entry.Info()
		if err != nil {
			return err
		}
		kept++
		if !entry.IsDir() {
			size += info.Size()
		}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if kept > fuzzLimits.KeptEntries || size > fuzzLimits.ContentBytes {
		t.Errorf("kept %d entries of %d bytes", kept, size)
	}
}
