package catalogclient

import (
	"crypto/sha256"
	"errors"
	"os"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// FuzzCopy reads copies of an index that are damaged although their checksum is
// right. Each is removed, or is an index like any other.
func FuzzCopy(f *testing.F) {
	f.Add([]byte(`{"format":2,"catalog":"c","packages":1}{"package":{"name":"p"}}`))
	f.Add([]byte(`{"format":1,"catalog":"c"}`))
	c := &copies{dir: f.TempDir(), limit: 1 << 14, all: 1 << 20}
	f.Fuzz(func(t *testing.T, text []byte) {
		sum := sha256.New()
		sum.Write(text)
		if err := os.WriteFile(c.path("c"), append([]byte(checksum(sum)), text...), 0o600); err != nil {
			t.Fatal(err)
		}
		first := loadCopy(t, c)
		if first == nil {
			return
		}
		for name, e := range first.packages {
			checkEntry(t, name, e)
		}
		// Written once, it stays the same.
		second := rewriteCopy(t, c, first)
		if second == nil {
			return // larger than the limit, as its text is escaped
		}
		if diff := cmp.Diff(second, rewriteCopy(t, c, second), cmp.AllowUnexported(index{}, entry{})); diff != "" {
			t.Errorf("after a restart: -want +got\n%s", diff)
		}
	})
}

// loadCopy returns the index of the catalog c; nil if its copy was removed.
func loadCopy(t *testing.T, c *copies) *index {
	t.Helper()
	loaded, err := c.load()
	if err != nil {
		t.Fatal(err)
	}
	files, err := os.ReadDir(c.dir)
	if err != nil || len(files) != len(loaded) {
		t.Fatalf("%d indexes of the files %v, %v", len(loaded), files, err)
	}
	return loaded["c"]
}

func rewriteCopy(t *testing.T, c *copies, idx *index) *index {
	t.Helper()
	written, err := c.write("c", idx)
	if _, tooLarge := errors.AsType[*fbc.LimitError](err); tooLarge {
		return nil
	}
	if err != nil {
		t.Fatal(err)
	}
	if err := c.publish(written, "c"); err != nil {
		t.Fatal(err)
	}
	return loadCopy(t, c)
}

// checkEntry uses an entry as its readers do.
func checkEntry(t *testing.T, name string, e *entry) {
	t.Helper()
	if e.Package.Name != name {
		t.Errorf("package %q is found as %q", e.Package.Name, name)
	}
	provides(&e.Package, requirement.API{Kind: "Sample"})
	for _, bundle := range e.Package.Bundles {
		if bundle.Facts != nil && slices.Contains(bundle.Facts.Properties, nil) {
			t.Errorf("bundle %q has no property where there is one", bundle.Name)
		}
	}
}
