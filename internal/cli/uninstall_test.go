package cli

import (
	"bytes"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

func TestUninstallsForPeople(t *testing.T) {
	t.Parallel()
	var text bytes.Buffer
	err := PrintUninstall(&text, preview.Uninstall{
		Extension: "x", Installed: &preview.Bundle{Name: "x.v1", Version: "1.0.0"},
		Policy: "RefuseWhileInUse", Order: []string{"nothing", "everything"}, Counts: preview.UninstallCounts{Delete: 1, Keep: 1},
		Objects: []preview.UninstalledObject{
			{Reference: object.Reference{Kind: "CustomResourceDefinition", Name: "things.test"}, Action: preview.Delete},
			{Reference: object.Reference{Kind: "Role", Namespace: "ns", Name: "b"}, Action: preview.Keep, Detail: "it is \x1b[2Jforeign"},
		},
		Definitions: []preview.UsedDefinition{{Name: "things.test", Action: preview.Delete, Count: 2, First: []string{`Thing "a"`}}},
		Obstacles:   []string{"deletion is refused"},
		Warning:     "custom resources with finalizers: 1",
	})
	if err != nil {
		t.Fatal(err)
	}
	const want = `x: deletion, with "x.v1" version "1.0.0" installed
uninstall policy: RefuseWhileInUse
1 to delete, 1 to keep

ACTION   OBJECT                                   DETAIL
delete   CustomResourceDefinition "things.test"   
keep     Role "b" in namespace "ns"               it is �[2Jforeign

custom resources, in all namespaces:
  things.test: 2 to delete: Thing "a" and 1 more

in this order:
  1. nothing
  2. everything

warning:
  custom resources with finalizers: 1

in the way:
  deletion is refused
`
	if diff := cmp.Diff(want, text.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
	text.Reset()
	if err := PrintUninstall(&text, preview.Uninstall{Extension: "x", Policy: "Delete", PolicyUnknown: "by a flag"}); err != nil {
		t.Fatal(err)
	}
	const bare = "x: deletion, with nothing installed\nuninstall policy: Delete\nby a flag\n0 to delete, 0 to keep\n"
	if diff := cmp.Diff(bare, text.String()); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}
