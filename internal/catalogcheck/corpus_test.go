package catalogcheck_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// corpus returns the folder of real catalogs, or skips the test.
func corpus(t *testing.T) string {
	t.Helper()
	dir := os.Getenv("CORPUS_DIR")
	if dir == "" {
		dir = filepath.Join("..", "..", "..", "shared", "corpus")
	}
	if _, err := os.Stat(dir); err != nil {
		t.Skip("corpus not present: set CORPUS_DIR")
	}
	return dir
}

// folders returns all folders below root that have files.
func folders(t *testing.T, root string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			if dir := filepath.Dir(path); len(paths) == 0 || paths[len(paths)-1] != dir {
				paths = append(paths, dir)
			}
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return paths
}

// withoutNotes returns the files below folder but those that say where the
// others are from.
func withoutNotes(t *testing.T, folder string) fstest.MapFS {
	t.Helper()
	root := fstest.MapFS{}
	err := filepath.WalkDir(folder, func(path string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() || d.Name() == "SOURCE" {
			return err
		}
		data, err := os.ReadFile(path)
		if err != nil {
			return err
		}
		name, err := filepath.Rel(folder, path)
		root[filepath.ToSlash(name)] = &fstest.MapFile{Data: data}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return root
}
