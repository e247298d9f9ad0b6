package inspect

import (
	"testing"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
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
