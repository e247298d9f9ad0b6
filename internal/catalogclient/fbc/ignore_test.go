package fbc_test

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

// read returns the paths of all objects, and the last error.
func read(ctx context.Context, f fbc.Folder) ([]string, error) {
	var paths []string
	var last error
	for o, err := range f.Objects(ctx) {
		if last = err; err == nil {
			paths = append(paths, o.Path)
		}
	}
	return paths, last
}

// TestWalkIsBounded: each bound lets through what just fits. Beyond it the error
// names the file, and nothing more is read: which files belong to the catalog is
// not known.
func TestWalkIsBounded(t *testing.T) {
	t.Parallel()
	files := func(patterns string) map[string]string {
		return map[string]string{".indexignore": patterns, "a": `{"name":"1"}`, "b.md": "[", "c/c.md": "["}
	}
	tests := map[string]struct {
		files map[string]string
		// fits has a value for the bound, of which most is the least that lets the files
		// through.
		fits func(value int) fbc.WalkLimits
		most int
		path string
		want string
	}{
		"bytes of a pattern": {
			files: files("# of any length\n*.md"), most: 4, path: ".indexignore", want: "bytes of a pattern",
			fits: func(n int) fbc.WalkLimits { return fbc.WalkLimits{PatternBytes: n} },
		},
		"patterns": {
			files: files("*.md\n# none\n\n*.txt\n"), most: 2, path: ".indexignore", want: "patterns of .indexignore files",
			fits: func(n int) fbc.WalkLimits { return fbc.WalkLimits{Patterns: n} },
		},
		"bytes of files with patterns": {
			files: files("# 3\n*.md\n"), most: 9, path: ".indexignore", want: "bytes of .indexignore files",
			fits: func(n int) fbc.WalkLimits { return fbc.WalkLimits{IgnoreBytes: n} },
		},
		"ignored files": {
			files: files("*.md"), most: 6, path: "c/c.md", want: "files and folders",
			fits: func(n int) fbc.WalkLimits { return fbc.WalkLimits{Entries: n} },
		},
		"nesting": {
			files: files("*.md"), most: 2, path: "c/c.md", want: "levels of folders",
			fits: func(n int) fbc.WalkLimits { return fbc.WalkLimits{Depth: n} },
		},
		"work": {
			// The pattern of four bytes holds below ".", for paths of eleven bytes.
			files: files("*.md"), most: (4 + 1) * 11, path: "c/c.md", want: "bytes of patterns times bytes of paths",
			fits: func(n int) fbc.WalkLimits { return fbc.WalkLimits{Matching: int64(n)} },
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			root := folder(test.files)
			paths, err := read(t.Context(), fbc.Folder{Root: root, Walk: test.fits(test.most)})
			if diff := cmp.Diff([]string{"a"}, paths); err != nil || diff != "" {
				t.Fatalf("what fits: %v (-want +got)\n%s", err, diff)
			}
			_, err = read(t.Context(), fbc.Folder{Root: root, Walk: test.fits(test.most - 1)})
			file, ok := errors.AsType[*fbc.FileError](err)
			if !ok || file.Path != test.path {
				t.Fatalf("got error %v, want one of %s", err, test.path)
			}
			limit, ok := errors.AsType[*fbc.LimitError](err)
			if !ok || limit.What != test.want || limit.Limit != int64(test.most-1) {
				t.Errorf("got error %v, want %q", err, test.want)
			}
		})
	}
}

// TestDefaultsBoundPatterns: nobody who reads a catalog has to ask for the bounds.
func TestDefaultsBoundPatterns(t *testing.T) {
	t.Parallel()
	for name, patterns := range map[string]string{
		"many":  strings.Repeat("a*\n", 1001),
		"long":  strings.Repeat("a", 1025),
		"bytes": strings.Repeat("#", 64<<10) + "\n",
	} {
		root := folder(map[string]string{"a": `{"name":"1"}`, "sub/.indexignore": patterns})
		_, err := read(t.Context(), fbc.Folder{Root: root})
		if _, ok := errors.AsType[*fbc.LimitError](err); !ok {
			t.Errorf("%s: got %v, want a LimitError", name, err)
		}
	}
}

// TestIgnoredFilesAreLeft: a walk ends with its context, also where all files are
// ignored, in the first way through the folder and in the second.
func TestIgnoredFilesAreLeft(t *testing.T) {
	t.Parallel()
	files := folder(map[string]string{".indexignore": "*", "a/1": "[", "b/1": "[", "c/1": "[", "d/1": "["})
	const folders = 5
	for listed := range 2 * folders {
		ctx, cancel := context.WithCancel(t.Context())
		root := &listedFS{MapFS: files, last: listed, done: cancel}
		_, err := read(ctx, fbc.Folder{Root: root})
		if !errors.Is(err, context.Canceled) && listed < 2*folders-1 {
			t.Errorf("after %d folders: got error %v, want %v", listed, err, context.Canceled)
		}
		if root.listed > listed+1 {
			t.Errorf("%d folders were listed, %d of them without a context", root.listed, root.listed-listed-1)
		}
	}
}

// listedFS calls done when it has listed the last folder.
type listedFS struct {
	fstest.MapFS

	listed, last int
	done         func()
}

func (f *listedFS) ReadDir(name string) ([]fs.DirEntry, error) {
	if f.listed == f.last {
		defer f.done()
	}
	f.listed++
	return f.MapFS.ReadDir(name)
}

// TestOnlyFilesAreOpened: to open a pipe that nobody writes to lasts for ever.
func TestOnlyFilesAreOpened(t *testing.T) {
	t.Parallel()
	for _, name := range []string{".indexignore", "catalog.json"} {
		dir := t.TempDir()
		if err := syscall.Mkfifo(filepath.Join(dir, name), 0o600); err != nil {
			t.Fatal(err)
		}
		_, err := read(t.Context(), fbc.Folder{Root: os.DirFS(dir)})
		if file, ok := errors.AsType[*fbc.FileError](err); !ok || file.Path != name {
			t.Errorf("got error %v, want one of %s", err, name)
		}
	}
}

// BenchmarkMatching spends all the work that patterns may take.
func BenchmarkMatching(b *testing.B) {
	// It is tried at each byte of a name, and fails with its last one.
	pattern := "*" + strings.Repeat("a", 127) + "b\n"
	files := map[string]string{".indexignore": strings.Repeat(pattern, 500)}
	name := strings.Repeat("a", 255)
	for i := range 1000 {
		files[fmt.Sprintf("%s/%s/%d", name, name, i)] = ""
	}
	root := folder(files)
	for b.Loop() {
		_, err := read(b.Context(), fbc.Folder{Root: root})
		if _, ok := errors.AsType[*fbc.LimitError](err); !ok {
			b.Fatalf("got %v, want a LimitError", err)
		}
	}
}
