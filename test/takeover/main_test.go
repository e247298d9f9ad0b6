// Package takeover_test has the controller take over a cluster that the
// reference implementation left behind, as a snapshot of etcd.
package takeover_test

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/klauspost/compress/zstd"
)

// snapshot gives the snapshot of the reference's cluster as a file. It is not
// part of the project: TAKEOVER_DIR names its folder, or it is at its usual
// place beside the checkout. Tests are skipped where it is not there.
func snapshot(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("TAKEOVER_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "takeover")
	}
	compressed, err := os.ReadFile(filepath.Join(dir, "reference-v1.10.db.zst"))
	if err != nil {
		t.Skip("snapshot of the reference's cluster not present: set TAKEOVER_DIR")
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
