package inspect

import (
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/bundle"
)

func TestTheRevisionBefore(t *testing.T) {
	t.Parallel()
	revision := func(name, inputs string, written bool) release.Recording {
		return release.Recording{
			Revision: installation.Revision{Bundle: bundle.Identity{Package: "p", Name: name, Version: name}, Inputs: inputs}, Written: written,
		}
	}
	for name, test := range map[string]struct {
		reason     string
		recordings []release.Recording
		want       string
		err        string
	}{
		"nothing":                 {err: "nothing is installed"},
		"nothing whole":           {recordings: []release.Recording{revision("1", "", false)}, err: "nothing is installed"},
		"the first":               {recordings: []release.Recording{revision("1", "", true)}, err: `there is no revision before "1" in the release records`},
		"after an upgrade":        {recordings: []release.Recording{revision("1", "", true), revision("2", "", true)}, want: "1"},
		"after two":               {recordings: []release.Recording{revision("1", "", true), revision("2", "", true), revision("3", "", true)}, want: "2"},
		"after a rollback":        {reason: "it goes back and forth", recordings: []release.Recording{revision("1", "", true), revision("2", "", true), revision("1", "", true)}, want: "2"},
		"other configurations":    {reason: "they are in the spec", recordings: []release.Recording{revision("1", "", true), revision("2", "a", true), revision("2", "b", true)}, want: "1"},
		"a failed one between":    {reason: "it was never whole", recordings: []release.Recording{revision("1", "", true), revision("2", "", false), revision("3", "", true)}, want: "1"},
		"a failed one last":       {reason: "what it has written is taken back", recordings: []release.Recording{revision("1", "", true), revision("2", "", true), revision("3", "", false)}, want: "2"},
		"the same failed at last": {reason: "another configuration of the installed bundle has failed", recordings: []release.Recording{revision("1", "", true), revision("2", "a", true), revision("2", "b", false)}, want: "1"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, err := before(test.recordings)
			text := ""
			if err != nil {
				text = err.Error()
			}
			if got.Bundle.Name != test.want || text != test.err {
				t.Errorf("%q, error %q, want %q, %q: %s", got.Bundle.Name, text, test.want, test.err, test.reason)
			}
		})
	}
}

func TestRollbackToOtherContent(t *testing.T) {
	t.Parallel()
	const one, other = "sha256:1111111111111111111111111111111111111111111111111111111111111111", "sha256:2222222222222222222222222222222222222222222222222222222222222222"
	for name, test := range map[string]struct {
		recorded installation.Revision
		digest   string
		refused  bool
	}{
		"the same":                 {recorded: installation.Revision{Image: "r.test/p:v1", Digest: one}, digest: one},
		"the same somewhere else":  {recorded: installation.Revision{Image: "r.test/p@" + one}, digest: one},
		"other content":            {recorded: installation.Revision{Image: "r.test/p:v1", Digest: one}, digest: other, refused: true},
		"other content, by digest": {recorded: installation.Revision{Image: "r.test/p@" + one}, digest: other, refused: true},
		"not recorded":             {recorded: installation.Revision{Image: "r.test/p:v1"}, digest: other},
		"nothing was pulled":       {recorded: installation.Revision{Digest: one}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if err := otherContent(test.recorded, test.digest); (err != nil) != test.refused {
				t.Errorf("error %v, want one: %t", err, test.refused)
			}
		})
	}
}

func TestRollbackOverUnreadDefinitions(t *testing.T) {
	t.Parallel()
	definition := object.Key{GroupKind: object.DefinitionKind, Name: "widgets.p"}
	got := unreadDefinitions([]object.Trial{
		{Key: object.Key{GroupKind: object.SecretKind, Name: "s"}, Unread: true},
		{Key: definition},
		{Key: definition, Unread: true},
	})
	if len(got) != 1 || !strings.HasSuffix(got[0], `as you may not read CustomResourceDefinition "widgets.p"`) {
		t.Errorf("told %q", got)
	}
}
