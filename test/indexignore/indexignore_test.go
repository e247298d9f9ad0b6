package indexignore_test

import (
	"encoding/json"
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/joelanford/ignore"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// ignoreFile is the name of the files with patterns.
const ignoreFile = ".indexignore"

// TestTable checks that go-git agrees with each row of the table that the unit test
// of package fbc reads. A row that describes a difference would need a field of its
// own; so far there is none.
func TestTable(t *testing.T) {
	t.Parallel()
	text, err := os.ReadFile("../../internal/catalogclient/fbc/testdata/patterns.json")
	if err != nil {
		t.Fatal(err)
	}
	var rows []struct {
		Reason   string            `json:"reason"`
		Patterns map[string]string `json:"patterns"`
		Excluded []string          `json:"excluded"`
		Kept     []string          `json:"kept"`
	}
	if err := json.Unmarshal(text, &rows); err != nil {
		t.Fatal(err)
	}
	for _, row := range rows {
		t.Run(row.Reason, func(t *testing.T) {
			t.Parallel()
			goGit, err := ignore.NewMatcher(folder(row.Patterns), ignoreFile)
			if err != nil {
				t.Fatal(err)
			}
			for _, path := range slices.Concat(row.Excluded, row.Kept) {
				got := goGit.Match(filepath.FromSlash(path), false)
				if want := slices.Contains(row.Excluded, path); got != want {
					t.Errorf("%s is excluded: %t, want %t", path, got, want)
				}
			}
		})
	}
}

// FuzzPatterns compares which of the same files are excluded, for patterns in the
// root and in a folder.
func FuzzPatterns(f *testing.F) {
	f.Add("*.md\n", "!a.md\n")
	f.Add("# none\n\n  /a/**/b \r\n!/a/c/b\n", "/b\n")
	f.Add("a/\n**/c\n", "[\n\\\\ \n**\n")
	f.Add("*\n!*/\n!b.md", "!\n/\n")
	f.Fuzz(func(t *testing.T, above, below string) {
		files := map[string]string{ignoreFile: above, "a/" + ignoreFile: below}
		for _, name := range []string{"a", "b", "a.md", "b.md", "c/b", "c/a.md"} {
			files["a/"+name+"/f"], files["d/"+name] = "{}", "{}"
			files["a/c/"+name+".f"] = "{}"
		}
		compare(t, folder(files))
	})
}

// FuzzPath compares whether one file of any name is excluded.
func FuzzPath(f *testing.F) {
	f.Add("a/**/b\n!**/c/\n", "a/x/b")
	f.Add("[^a-c]?\\*é*\n", "dé*\xff")
	f.Add("**/a/b/**\n", "a/c/a/b")
	f.Add("/**\n**//a\n", "b/a")
	f.Fuzz(func(t *testing.T, patterns, path string) {
		if !fs.ValidPath(path) || path == "." || slices.Contains(strings.Split(path, "/"), ignoreFile) {
			return
		}
		compare(t, folder(map[string]string{ignoreFile: patterns, path: "{}"}))
	})
}

// compare reports an error unless both controllers read the same files of root. Each
// file contains one object.
func compare(t *testing.T, root fs.FS) {
	t.Helper()
	goGit, err := ignore.NewMatcher(root, ignoreFile)
	if err != nil {
		return // a line of 64 KiB
	}
	var want []string
	_ = fs.WalkDir(root, ".", func(path string, d fs.DirEntry, _ error) error {
		if !d.IsDir() && d.Name() != ignoreFile && !goGit.Match(path, false) {
			want = append(want, path)
		}
		return nil
	})
	var got []string
	for o, err := range (fbc.Folder{Root: root}).Objects(t.Context()) {
		if _, isLimit := errors.AsType[*fbc.LimitError](err); isLimit {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, o.Path)
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("files that are read (-go-git +fbc):\n%s", diff)
	}
}

func folder(files map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for path, text := range files {
		root[path] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}
