package testkit

import (
	"cmp"
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// Snapshot gives a snapshot of etcd as a file. It is not part of the project: a variable
// names its folder, absolutely or from the root of the module, or that is at its usual place
// beside the checkout. Tests are skipped where it is not there.
func Snapshot(tb testing.TB, variable, folder, name string) string {
	tb.Helper()
	dir := cmp.Or(os.Getenv(variable), filepath.Join("..", "shared", folder))
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(moduleRoot(tb), dir)
	}
	compressed, err := os.ReadFile(filepath.Join(dir, name))
	if err != nil {
		tb.Skipf("snapshot %s not present: set %s", name, variable)
	}
	reader, err := zstd.NewReader(nil)
	if err != nil {
		tb.Fatal(err)
	}
	defer reader.Close()
	data, err := reader.DecodeAll(compressed, nil)
	if err != nil {
		tb.Fatal(err)
	}
	file := filepath.Join(tb.TempDir(), "snapshot.db")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		tb.Fatal(err)
	}
	return file
}
