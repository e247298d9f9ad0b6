package testkit

import (
	"os"
	"path/filepath"
	"testing"
)

// Corpus is the folder with real bundles and catalogs, for tests of packages two
// folders below the module's. It is not part of the project: CORPUS_DIR names
// it, or it is at its usual place beside the checkout. Tests are skipped where it
// is not there.
func Corpus(tb testing.TB) string {
	tb.Helper()
	dir := os.Getenv("CORPUS_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	if _, err := os.Stat(dir); err != nil {
		tb.Skip("corpus not present: set CORPUS_DIR")
	}
	return dir
}
