package fbc_test

import (
	"errors"
	"io/fs"
	"path"
	"slices"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// FuzzIndexIgnore reads a folder with any patterns, in the folder and in one of its
// own: they take files away and do nothing else, and the last one counts.
func FuzzIndexIgnore(f *testing.F) {
	f.Add("*.md\n", "", "README.md")
	f.Add("# all\n*\n!*.json\n", "!c.yaml\n", "x")
	f.Fuzz(func(t *testing.T, top, sub, name string) {
		if !fs.ValidPath(name) || strings.Contains(name, "/") || name == "." || name == ".indexignore" {
			return
		}
		all, _ := readFolder(t, "", "", name)
		if got, understood := readFolder(t, top, sub, name); understood && !isPart(got, all) {
			t.Errorf("read %q of %q", got, all)
		}
		if got, understood := readFolder(t, top+"\n*\n", "", name); understood && len(got) > 0 {
			t.Errorf("read %q although all are excluded", got)
		}
		if got, understood := readFolder(t, top+"\n!*\n", "", name); understood && !slices.Equal(got, all) {
			t.Errorf("read %q although %q are included again", got, all)
		}
	})
}

// readFolder returns the paths of the objects of a folder with these patterns. They
// are not understood if the error is about them, which is then the only one.
func readFolder(t *testing.T, top, sub, name string) (paths []string, understood bool) {
	t.Helper()
	root := folder(map[string]string{
		".indexignore": top, "sub/.indexignore": sub,
		"a.json": "{}", "sub/b.md": "{}", "sub/c.yaml": "{}", "sub/sub/d.json": "{}", "sub/" + name: "{}",
	})
	for o, err := range (fbc.Folder{Root: root}).Objects(t.Context()) {
		if err == nil {
			paths = append(paths, o.Path)
			continue
		}
		if inFile := (*fbc.FileError)(nil); errors.As(err, &inFile) && path.Base(inFile.Path) != ".indexignore" {
			t.Errorf("%s: %v", inFile.Path, err)
		}
		return nil, false
	}
	return paths, true
}

// isPart says whether part has elements of all in their order.
func isPart(part, all []string) bool {
	for _, element := range part {
		at := slices.Index(all, element)
		if at < 0 {
			return false
		}
		all = all[at+1:]
	}
	return true
}
