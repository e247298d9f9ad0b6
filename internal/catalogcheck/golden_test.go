package catalogcheck_test

import (
	"flag"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	"github.com/rogpeppe/go-internal/txtar"

	"github.com/clusterextensions/operator-controller/internal/catalogcheck"
)

var update = flag.Bool("update", false, "write the problems that are found into the archives in testdata")

// problemsFile is the file of an archive that has the problems of the others.
const problemsFile = "PROBLEMS"

// Each archive is a catalog and what is wrong with it.
func TestGolden(t *testing.T) {
	t.Parallel()
	for _, path := range archives(t) {
		t.Run(strings.TrimSuffix(filepath.Base(path), ".txtar"), func(t *testing.T) {
			t.Parallel()
			archive, err := txtar.ParseFile(path)
			if err != nil {
				t.Fatal(err)
			}
			root, want := catalogIn(archive)
			got := text(check(t, root))
			if *update {
				rewrite(t, path, archive, got)
				return
			}
			if diff := cmp.Diff(want, got); diff != "" {
				t.Errorf("(-want +got)\n%s\n%s", archive.Comment, diff)
			}
		})
	}
}

func archives(tb testing.TB) []string {
	tb.Helper()
	paths, err := filepath.Glob(filepath.Join("testdata", "*.txtar"))
	if err != nil || len(paths) == 0 {
		tb.Fatalf("no archives: %v", err)
	}
	return paths
}

// catalogIn returns the catalog in an archive and its problems as they should be.
func catalogIn(archive *txtar.Archive) (root fstest.MapFS, problems string) {
	root = fstest.MapFS{}
	for _, file := range archive.Files {
		if file.Name == problemsFile {
			problems = string(file.Data)
			continue
		}
		root[file.Name] = &fstest.MapFile{Data: file.Data}
	}
	return root, problems
}

func rewrite(t *testing.T, path string, archive *txtar.Archive, problems string) {
	t.Helper()
	files := archive.Files[:0]
	for _, file := range archive.Files {
		if file.Name != problemsFile {
			files = append(files, file)
		}
	}
	files = append(files, txtar.File{Name: problemsFile, Data: []byte(problems)})
	archive.Files = files
	if err := os.WriteFile(path, txtar.Format(archive), 0o600); err != nil {
		t.Fatal(err)
	}
}

func check(t *testing.T, root fs.FS) []catalogcheck.Problem {
	t.Helper()
	problems, err := catalogcheck.Check(t.Context(), root, nil)
	if err != nil {
		t.Fatal(err)
	}
	return problems
}

// text has each problem in a line.
func text(problems []catalogcheck.Problem) string {
	var b strings.Builder
	for _, p := range problems {
		b.WriteString(p.String() + "\n")
	}
	return b.String()
}
