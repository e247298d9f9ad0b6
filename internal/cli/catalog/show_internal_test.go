package catalog

import (
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/packagecard"
)

func TestPreferred(t *testing.T) {
	t.Parallel()
	first, others := preferred([]offer{{catalog: "a", priority: 1}, {catalog: "b", priority: 1}, {catalog: "c"}, {catalog: "d", priority: -1}})
	if len(first) != 2 || first[1].catalog != "b" {
		t.Errorf("got %v", first)
	}
	if diff := cmp.Diff([]string{"c", "d"}, others); diff != "" {
		t.Errorf("(-want +got)\n%s", diff)
	}
}

// However much a catalog says, the screen stays readable, and what is left out is told.
func TestWhatIsShownIsBounded(t *testing.T) {
	t.Parallel()
	const evil = "a\x1b[31m\tb\u202e"
	s := shown{Name: evil, DisplayName: evil, Deprecation: evil, Description: strings.Repeat(evil+"\n", 100)}
	for range 50 {
		s.Channels = append(s.Channels, packagecard.Channel{Name: evil, Heads: []string{evil}})
	}
	var text strings.Builder
	if err := printPackages(&text, []shown{s}); err != nil {
		t.Fatal(err)
	}
	got := text.String()
	if strings.ContainsAny(got, "\x1b\t\u202e") {
		t.Errorf("got %q", got)
	}
	for _, want := range []string{"and 30 more\n", "(70 more lines: -o json has them)\n"} {
		if !strings.Contains(got, want) {
			t.Errorf("there is no %q in\n%s", want, got)
		}
	}
	text.Reset()
	row := versionRow{Version: packagecard.Version{Version: evil, Channels: []string{evil}, Deprecated: strings.Repeat(evil, 100)}}
	if err := printVersions(&text, versionList{Versions: []versionRow{row}}, true); err != nil {
		t.Fatal(err)
	}
	got = text.String()
	if strings.Count(got, "\n") != 2 || strings.ContainsAny(got, "\x1b\t\u202e") || len(got) > 2*maxNotes+200 {
		t.Errorf("got %q", got)
	}
}

// endless is a file without an end.
type endless struct{}

func (endless) Read(to []byte) (int, error) { return len(to), nil }

func TestTemplatesAreNotReadWithoutEnd(t *testing.T) {
	t.Parallel()
	command := newTemplateCommand()
	command.SetArgs([]string{"-"})
	command.SetIn(endless{})
	command.SetOut(io.Discard)
	command.SetErr(io.Discard)
	if err := command.ExecuteContext(t.Context()); err == nil || !strings.Contains(err.Error(), "larger than 4194304 bytes") {
		t.Errorf("got %v", err)
	}
}
