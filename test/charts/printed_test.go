package charts_test

import (
	"compress/gzip"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// maxPrintedName is the length of the names of releases that the printed files have.
const maxPrintedName = 42

// TestPrintedByHelm compares real charts with what "helm template --include-crds" of an earlier version
// of Helm has printed, beside their archives.
func TestPrintedByHelm(t *testing.T) {
	t.Parallel()
	skipShort(t)
	folder := testkit.Charts(t)
	for _, chart := range realCharts(t) {
		t.Run(chart.name, func(t *testing.T) {
			t.Parallel()
			found, err := filepath.Glob(filepath.Join(folder, "*", chart.name+".rendered.yaml.gz"))
			if err != nil || len(found) != 1 {
				t.Fatalf("%d files with what Helm has printed, error %v", len(found), err)
			}
			at := usual()
			at.release = "r-" + filepath.Base(filepath.Dir(found[0]))
			at.release = at.release[:min(len(at.release), maxPrintedName)]
			at.namespace = at.release
			comparePrinted(t, chart, at, unzipped(t, found[0]))
		})
	}
}

func unzipped(t *testing.T, name string) []byte {
	t.Helper()
	file, err := os.Open(name)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	content, err := gzip.NewReader(file)
	if err != nil {
		t.Fatal(err)
	}
	text, err := io.ReadAll(content)
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// comparePrinted compares objects and hooks at once: what is printed does not tell them apart.
func comparePrinted(t *testing.T, chart packaged, at situation, printed []byte) {
	t.Helper()
	objects, err := build(printed)
	if err != nil {
		t.Fatal(err)
	}
	made := newOurs(t, chart).render(t, at, []byte("{}"))
	if made.refusal != nil {
		t.Fatal(made.refusal)
	}
	want, got := together(result{objects: objects}), together(made)
	if differences := resultDifferences(want, got, at); len(differences) > 0 && !isLikeBoth(want, together(byHelm(t, chart, at, []byte("{}"))), got, at) {
		t.Error(strings.Join(differences, "\n"))
	}
}

// together returns objects and hooks as objects, without the annotations of hooks.
func together(of result) result {
	all := result{objects: of.copied().all()}
	for _, object := range all.objects {
		withoutHookAnnotations(object)
	}
	return all
}
