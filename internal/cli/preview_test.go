package cli

import (
	"bytes"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

func sample() preview.Preview {
	reference := func(kind, name string) object.Reference {
		return object.Reference{Kind: kind, Namespace: "ns", Name: name}
	}
	return preview.Preview{
		Extension: "x",
		Installed: &preview.Bundle{Name: "x.v1", Version: "1.0.0"},
		Chosen:    &preview.Bundle{Name: "x.v2", Version: "2.0.0", Catalog: "c"},
		Counts:    preview.Counts{Create: 1, Change: 1, Conflict: 1},
		Objects: []preview.Object{
			{Reference: reference("ConfigMap", "a"), Action: preview.Change, Fields: []string{"data.x", "data.y"}, More: 3, Diff: "--- a\n+++ b\n@@ -1 +1 @@\n-\tx\n+\t\x1b[2Jy\n"},
			{Reference: reference("Role", "b"), Action: preview.Create, Untried: object.UntriedOwn},
			{Reference: reference("Service", "c"), Action: preview.Conflict, Problem: "it belongs to \x1b[2Jnobody"},
		},
		Images:        []preview.ImageChange{{Workload: reference("Pod", "p"), Container: "main", After: "i:2"}},
		Restarts:      []object.Reference{reference("Pod", "p")},
		Gains:         []string{"more"},
		Waits:         "approval",
		WithoutServer: "without the server: all",

		DependsOnCluster: true,

		Obstacles: []string{"a conflict"},
	}
}

func TestPreviewsForPeople(t *testing.T) {
	t.Parallel()
	var text, diff bytes.Buffer
	if err := PrintPreview(&text, sample()); err != nil {
		t.Fatal(err)
	}
	const want = `x: from "x.v1" to "x.v2" version "2.0.0" from catalog "c"
without the server: all
the chart has looked at the cluster, as you: as the ServiceAccount, or later, it may find something else
1 to create, 1 to change, 1 of others
pods restart: 1

ACTION     OBJECT                            DETAIL
change     ConfigMap "a" in namespace "ns"   data.x, data.y and 3 more
create     Role "b" in namespace "ns"        not tried: it depends on other objects of the bundle
conflict   Service "c" in namespace "ns"     it belongs to �[2Jnobody

images that change:
  Pod "p" in namespace "ns", container "main": none -> i:2

workloads whose pods restart:
  Pod "p" in namespace "ns"

rights that the operator gains:
  more

it would wait for:
  approval

in the way:
  a conflict
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("text (-want +got)\n%s", diff)
	}
	if err := PrintDiff(&diff, sample()); err != nil {
		t.Fatal(err)
	}
	if got := diff.String(); !strings.Contains(got, "\n--- a\n+++ b\n@@ -1 +1 @@\n-\tx\n+\t�[2Jy\n# Role \"b\"") || strings.Contains(got, "\x1b") {
		t.Errorf("got\n%q", got)
	}
}

func TestPreviewOfNothing(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	if err := PrintPreview(&text, preview.Preview{Extension: "x"}); err != nil {
		t.Fatal(err)
	}
	if want := "x: from nothing to nothing else\nno objects\npods restart: 0\n"; text.String() != want {
		t.Errorf("got %q, want %q", text.String(), want)
	}
}
