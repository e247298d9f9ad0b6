package fbc_test

import (
	"errors"
	"io/fs"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

func folder(files map[string]string) fstest.MapFS {
	root := fstest.MapFS{}
	for path, text := range files {
		root[path] = &fstest.MapFile{Data: []byte(text)}
	}
	return root
}

func TestFolder(t *testing.T) {
	t.Parallel()
	link := folder(map[string]string{"c": `{"name":"3"}`})
	link["b"] = &fstest.MapFile{Mode: fs.ModeSymlink, Data: []byte("c")}
	tests := map[string]struct {
		reason string
		folder fbc.Folder
		want   []string
	}{
		"order": {
			reason: "Objects come by the paths of their files, and then as they stand there.",
			folder: fbc.Folder{Root: folder(map[string]string{"b": `{"name":"3"}`, "a/z": `{"name":"1"}{"name":"2"}`})},
			want:   []string{"a/z 1", "a/z 2", "b 3"},
		},
		"ignored": {
			reason: "Excluded files need not be catalogs.",
			folder: fbc.Folder{Root: folder(map[string]string{
				"a": `{"name":"1"}`, "README.md": "# Not\n* this\n", ".indexignore": "*.md\n", "sub/x.md": "[",
			})},
			want: []string{"a 1"},
		},
		"malformed object": {
			reason: "The objects around it can be used.",
			folder: fbc.Folder{Root: folder(map[string]string{"a": `{"name":1}{"name":"2"}`})},
			want:   []string{"error in a", "a 2"},
		},
		"malformed file": {
			reason: "The files around it can be used.",
			folder: fbc.Folder{Root: folder(map[string]string{"a": `{"name":"1"}]{"name":"2"}`, "b": `{"name":"3"}`})},
			want:   []string{"a 1", "error in a", "b 3"},
		},
		"not a file": {
			reason: "A link could lead anywhere.",
			folder: fbc.Folder{Root: link},
			want:   []string{"error in b", "c 3"},
		},
		"too many files": {
			reason: "One error says so, and nothing more is read.",
			folder: fbc.Folder{Root: folder(map[string]string{"a": `{"name":"1"}`, "b": "{}", "c": "{}"}), Walk: fbc.WalkLimits{Files: 1}},
			want:   []string{"a 1", "error in b"},
		},
		"no folder": {
			folder: fbc.Folder{Root: noFolder{}},
			want:   []string{"error"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			for o, err := range tc.folder.Objects(t.Context()) {
				var inFile *fbc.FileError
				switch {
				case errors.As(err, &inFile):
					got = append(got, "error in "+inFile.Path)
				case err != nil:
					got = append(got, "error")
				default:
					got = append(got, o.Path+" "+o.Name)
				}
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("%s (-want +got)\n%s", tc.reason, diff)
			}
		})
	}
}

func TestFolderStops(t *testing.T) {
	t.Parallel()
	root := folder(map[string]string{"a": `{"name":1}{"name":"2"}`, "b": "]"})
	for stop := range 3 {
		n := 0
		for range (fbc.Folder{Root: root}).Objects(t.Context()) {
			if n == stop {
				break
			}
			n++
		}
		if n != stop {
			t.Errorf("stopped after %d items instead of %d", n, stop)
		}
	}
}

type noFolder struct{}

func (noFolder) Open(name string) (fs.File, error) {
	return nil, &fs.PathError{Op: "open", Path: name, Err: fs.ErrNotExist}
}
