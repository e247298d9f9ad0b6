package testkit

import (
	"bytes"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"testing"
	"testing/fstest"
)

// Corpus is the folder with real bundles and catalogs. It is not part of the
// project: CORPUS_DIR names it, absolutely or from the root of the checkout, or it is
// at its usual place beside the checkout. Tests are skipped where it is not there.
func Corpus(tb testing.TB) string {
	tb.Helper()
	return shared(tb, "CORPUS_DIR", "corpus")
}

// Charts is the folder with real Helm charts. It is not part of the project either: CHARTS_DIR names
// it, or it is at its usual place beside the checkout. Tests are skipped where it is not there.
func Charts(tb testing.TB) string {
	tb.Helper()
	return shared(tb, "CHARTS_DIR", "charts")
}

// Cases is the folder with small inputs that broke systems like this one. It is not part of the project either:
// CASES_DIR names it, or it is at its usual place beside the checkout. Tests are skipped where it is not there.
func Cases(tb testing.TB) string {
	tb.Helper()
	return shared(tb, "CASES_DIR", "cases")
}

func shared(tb testing.TB, variable, folder string) string {
	tb.Helper()
	dir := cmp.Or(os.Getenv(variable), filepath.Join("..", "shared", folder))
	if !filepath.IsAbs(dir) {
		dir = filepath.Join(moduleRoot(tb), dir)
	}
	if _, err := os.Stat(dir); err != nil {
		tb.Skipf("the folder of %s is not present: set %s", folder, variable)
	}
	return dir
}

// CorpusFiles are those below a folder but the notes that say where the others are from.
func CorpusFiles(tb testing.TB, folder string) fstest.MapFS {
	tb.Helper()
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
		tb.Fatal(err)
	}
	return root
}

// CorpusLines are the values in a file that has one on each line, of which there is one
// at least.
func CorpusLines[T any](tb testing.TB, path string) []T {
	tb.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		tb.Fatal(err)
	}
	var values []T
	for line := range bytes.Lines(content) {
		var value T
		if err := json.Unmarshal(line, &value); err != nil {
			tb.Fatal(err)
		}
		values = append(values, value)
	}
	if len(values) == 0 {
		tb.Fatalf("nothing is in %s", path)
	}
	return values
}

func moduleRoot(tb testing.TB) string {
	tb.Helper()
	root, err := ModuleRoot()
	if err != nil {
		tb.Fatal(err)
	}
	return root
}

// mainModule is the first line of the go.mod in the root of the checkout.
const mainModule = "module github.com/clusterextensions/operator-controller\n"

// ModuleRoot returns the root of the checkout: the folder of the main module, at or above the
// working directory. That can be in another module of the checkout, such as test.
func ModuleRoot() (string, error) {
	dir, err := os.Getwd()
	if err != nil {
		return "", fmt.Errorf("finding the module: %w", err)
	}
	for {
		content, err := os.ReadFile(filepath.Join(dir, "go.mod"))
		if err == nil && bytes.HasPrefix(content, []byte(mainModule)) {
			return dir, nil
		}
		if err != nil && !errors.Is(err, fs.ErrNotExist) {
			return "", fmt.Errorf("finding the module: %w", err)
		}
		parent := filepath.Dir(dir)
		if parent == dir {
			return "", errors.New("finding the module: the working directory is outside of the checkout")
		}
		dir = parent
	}
}
