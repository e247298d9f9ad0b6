package testkit

import (
	"cmp"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
)

// Corpus is the folder with real bundles and catalogs. It is not part of the
// project: CORPUS_DIR names it, absolutely or from the root of the module, or it is
// at its usual place beside the checkout. Tests are skipped where it is not there.
func Corpus(tb testing.TB) string {
	tb.Helper()
	dir := cmp.Or(os.Getenv("CORPUS_DIR"), filepath.Join("..", "shared", "corpus"))
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(moduleRoot(tb), dir)
	}
	if _, err := os.Stat(dir); err != nil {
		tb.Skip("corpus not present: set CORPUS_DIR")
	}
	return dir
}

// moduleRoot is found from the folder of the package under test.
func moduleRoot(tb testing.TB) string {
	tb.Helper()
	dir, err := os.Getwd()
	if err != nil {
		tb.Fatal(err)
	}
	for {
		_, err := os.Stat(filepath.Join(dir, "go.mod"))
		if err == nil {
			return dir
		}
		if parent := filepath.Dir(dir); errors.Is(err, fs.ErrNotExist) && parent != dir {
			dir = parent
			continue
		}
		tb.Fatalf("the test runs in no module: %v", err)
	}
}
