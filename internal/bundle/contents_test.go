package bundle_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

func TestContents(t *testing.T) {
	t.Parallel()
	files := fstest.MapFS{
		"manifests/a.yaml":          {Data: []byte("kind: A")},
		"manifests/b.yaml":          {Data: []byte("kind: B\n---\nkind: C")},
		"manifests/c.yaml":          {Data: []byte("[")},
		"manifests/more/d.yaml":     {Data: []byte("kind: D")},
		"metadata/annotations.yaml": {Data: []byte("annotations: {}")},
		"other/e.yaml":              {Data: []byte("kind: E")},
	}
	contents, leftOut, err := bundle.Contents(files)
	if err != nil {
		t.Fatal(err)
	}
	want := []string{"manifests/a.yaml", "manifests/b.yaml", "metadata/annotations.yaml"}
	if diff := cmp.Diff(want, slices.Sorted(maps.Keys(contents))); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	if len(leftOut) != 2 || leftOut[0].String() != "manifests/b.yaml: all documents but the first one" || !strings.HasPrefix(leftOut[1].String(), "manifests/c.yaml: ") {
		t.Errorf("left out: %q", leftOut)
	}
}

// What is beyond the bounds of bundles is refused, however small its text is.
func TestContentsAreBounded(t *testing.T) {
	t.Parallel()
	bomb := "long: &long " + strings.Repeat("x", 256<<10) + "\nmuch: [" + strings.Repeat("*long,", 2400) + "]\n"
	for want, files := range map[string]fstest.MapFS{
		"expands to more than":                {"manifests/a.yaml": {Data: []byte(bomb)}, "metadata/a.yaml": {}},
		"nested deeper than":                  {"manifests/a.yaml": {Data: []byte(strings.Repeat("[", 1000) + strings.Repeat("]", 1000))}, "metadata/a.yaml": {}},
		"manifests: directory does not exist": {"metadata/a.yaml": {}},
	} {
		_, _, err := bundle.Contents(files)
		if _, invalid := errors.AsType[*bundle.InvalidError](err); !invalid || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v", want, err)
		}
	}
}
