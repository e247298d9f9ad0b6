package catalogcheck_test

import (
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/catalogcheck"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// Catalogs that real bundles were put into have no errors, and the warnings are
// few enough to be read.
func TestCorpusOfCatalogs(t *testing.T) {
	t.Parallel()
	const most = 10
	catalogs := folders(t, filepath.Join(testkit.Corpus(t), "catalog"))
	if len(catalogs) < 50 {
		t.Errorf("only %d catalogs", len(catalogs))
	}
	for _, folder := range catalogs {
		problems := check(t, testkit.CorpusFiles(t, folder))
		for _, p := range problems {
			if p.Severity == catalogcheck.Error {
				t.Errorf("%s: %s", folder, p)
			}
		}
		if len(problems) > most {
			t.Errorf("%s: %d problems", folder, len(problems))
		}
	}
}

// Catalogs that are fine, all of them in one, are not warned about: what they have
// in common with misspelled ones is a note, and one warning is about what nobody can
// have meant.
func TestCorpusIsFine(t *testing.T) {
	t.Parallel()
	count := map[catalogcheck.Severity]int{}
	for _, p := range check(t, os.DirFS(filepath.Join(testkit.Corpus(t), "catalog"))) {
		count[p.Severity]++
	}
	want := map[catalogcheck.Severity]int{catalogcheck.Warning: 1, catalogcheck.Note: 1}
	if diff := cmp.Diff(want, count); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// What is found in the wild has a handful of problems, or is no whole catalog:
// parts of one, templates, and several catalogs next to each other.
func TestCorpusFromTheWild(t *testing.T) {
	t.Parallel()
	const (
		most     = 100
		mostSame = 25
	)
	clean := 0
	for _, folder := range folders(t, filepath.Join(testkit.Corpus(t), "fbc")) {
		root := testkit.CorpusFiles(t, folder)
		problems := check(t, root)
		checkForm(t, root, problems)
		if len(problems) == 0 {
			clean++
		}
		if !slices.ContainsFunc(problems, isError) {
			checkReadable(t, root)
		}
		if len(problems) > most {
			t.Errorf("%s: %d problems", folder, len(problems))
		}
		perFile := map[string]int{}
		for _, p := range problems {
			perFile[p.File]++
		}
		for file, n := range perFile {
			if n > mostSame {
				t.Errorf("%s: %d problems in %s", folder, n, file)
			}
		}
	}
	if clean < 5 {
		t.Errorf("only %d catalogs without a problem", clean)
	}
}

// folders returns the folders below root that have files, sorted.
func folders(t *testing.T, root string) []string {
	t.Helper()
	var paths []string
	err := filepath.WalkDir(root, func(path string, d fs.DirEntry, err error) error {
		if err == nil && !d.IsDir() {
			paths = append(paths, filepath.Dir(path))
		}
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	slices.Sort(paths)
	return slices.Compact(paths)
}
