package cluster

import (
	"errors"
	"os"
	"path/filepath"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRemoveAbandonedLeavesWhatIsUsedOrKept(t *testing.T) {
	t.Parallel()
	parent := t.TempDir()
	used := makeWorkDir(t, filepath.Join(parent, workDirPrefix+"used"))
	t.Cleanup(func() { _ = used.remove() })
	failed := makeWorkDir(t, filepath.Join(parent, workDirPrefix+"failed"))
	if err := failed.removeAllButLogs(); err != nil {
		t.Fatal(err)
	}
	abandoned := makeWorkDir(t, filepath.Join(parent, workDirPrefix+"abandoned"))
	if err := abandoned.lock.Release(); err != nil {
		t.Fatal(err)
	}
	if err := os.MkdirAll(filepath.Join(parent, "foreign"), 0o700); err != nil {
		t.Fatal(err)
	}

	removeAbandoned(parent)
	want := []string{"foreign", workDirPrefix + "failed", workDirPrefix + "used"}
	if diff := cmp.Diff(want, entryNames(t, parent)); diff != "" {
		t.Errorf("directories (-want +got):\n%s", diff)
	}
	if diff := cmp.Diff([]string{workDirLogs}, entryNames(t, failed.path)); diff != "" {
		t.Errorf("after a failed start (-want +got):\n%s", diff)
	}
}

func TestRemoveLeavesNothing(t *testing.T) {
	t.Parallel()
	dir := makeWorkDir(t, filepath.Join(t.TempDir(), "dir"))
	if err := dir.remove(); err != nil {
		t.Fatal(err)
	}
	if _, err := os.Stat(dir.path); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("directory is left: %v", err)
	}
}

// makeWorkDir makes a working directory with some content.
func makeWorkDir(t *testing.T, path string) *workDir {
	t.Helper()
	dir, err := newWorkDir(path)
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{workDirLogs, "etcd"} {
		if err := os.Mkdir(dir.join(name), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

func entryNames(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var found []string
	for _, entry := range entries {
		found = append(found, entry.Name())
	}
	return found
}
