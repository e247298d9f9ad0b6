// Package migration_test looks at a cluster that classic OLM has left behind, a snapshot of etcd,
// with the commands by which its operators become extensions.
package migration_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// snapshot gives the snapshot of the cluster as a file. It is not part of the project:
// CLASSIC_DIR names its folder, or it is at its usual place beside the checkout. Tests are
// skipped where it is not there.
func snapshot(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("CLASSIC_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "classic")
	}
	compressed, err := os.ReadFile(filepath.Join(dir, "classic-v0.46.db.zst"))
	if err != nil {
		t.Skip("snapshot of a cluster of classic OLM not present: set CLASSIC_DIR")
	}
	reader, err := zstd.NewReader(nil)
	if err != nil {
		t.Fatal(err)
	}
	defer reader.Close()
	data, err := reader.DecodeAll(compressed, nil)
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "snapshot.db")
	if err := os.WriteFile(file, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}
