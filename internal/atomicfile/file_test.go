package atomicfile_test

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/atomicfile"
)

const prefix = ".next-"

func names(t *testing.T, dir string) []string {
	t.Helper()
	entries, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	var names []string
	for _, entry := range entries {
		names = append(names, entry.Name())
	}
	return names
}

func TestReplace(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	path := filepath.Join(dir, "file")
	for _, want := range []string{"long content", "short"} {
		if err := atomicfile.Replace(path, prefix, []byte(want)); err != nil {
			t.Fatal(err)
		}
		got, err := os.ReadFile(path)
		if err != nil || string(got) != want {
			t.Errorf("got %q, %v, want %q", got, err, want)
		}
	}
	info, err := os.Stat(path)
	if err != nil || info.Mode() != 0o600 {
		t.Errorf("got mode %v, %v", info.Mode(), err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"file"}) {
		t.Errorf("the folder has %q", got)
	}
}

func TestFailuresLeaveNothing(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	taken := filepath.Join(dir, "taken")
	if err := os.Mkdir(taken, 0o700); err != nil {
		t.Fatal(err)
	}
	errFill := errors.New("fill")
	if _, err := atomicfile.Create(dir, prefix, func(*os.File) error { return errFill }); !errors.Is(err, errFill) {
		t.Errorf("Create = %v, want %v", err, errFill)
	}
	if err := atomicfile.Replace(taken, prefix, nil); err == nil {
		t.Error("a folder was replaced")
	}
	if err := atomicfile.Replace(filepath.Join(dir, "none", "file"), prefix, nil); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("without a folder: %v", err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"taken"}) {
		t.Errorf("the folder has %q", got)
	}
}

func TestClear(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	left, err := atomicfile.Create(dir, prefix, func(*os.File) error { return nil })
	if err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Replace(filepath.Join(dir, "file"), prefix, nil); err != nil {
		t.Fatal(err)
	}
	if err := atomicfile.Clear(dir, prefix); err != nil {
		t.Fatal(err)
	}
	if got := names(t, dir); !slices.Equal(got, []string{"file"}) {
		t.Errorf("the folder has %q after %q was left", got, left)
	}
	if err := atomicfile.Clear(filepath.Join(dir, "none"), prefix); err != nil {
		t.Errorf("without a folder: %v", err)
	}
}
