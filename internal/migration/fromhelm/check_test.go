package fromhelm

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"helm.sh/helm/v3/pkg/chart"
	helmrelease "helm.sh/helm/v3/pkg/release"

	"github.com/clusterextensions/operator-controller/internal/migration/helmstore"
)

func TestRefuseEqualNames(t *testing.T) {
	t.Parallel()
	of := func(namespace, name string, state State) *Checked {
		return &Checked{Name: helmstore.Name{Namespace: namespace, Name: name}, State: state}
	}
	checked := []*Checked{
		of("a", "web", Movable), of("b", "web", Movable), of("c", "web", Moved),
		of("a", "db", Movable), of("b", "db", Refused),
	}
	RefuseEqualNames(checked)
	var got []State
	for _, one := range checked {
		got = append(got, one.State)
	}
	if diff := cmp.Diff([]State{Refused, Refused, Moved, Movable, Refused}, got); diff != "" {
		t.Errorf("states (-want +got):\n%s", diff)
	}
	if want := "2 releases have this name"; !strings.Contains(strings.Join(checked[0].Problems, ""), want) {
		t.Errorf("problems %q, want %q", checked[0].Problems, want)
	}
}

// TestRecordsThatCannotBeTranslated translates records that Helm did not write.
func TestRecordsThatCannotBeTranslated(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		release helmrelease.Release
		want    string
	}{
		"a hook without content": {helmrelease.Release{Hooks: []*helmrelease.Hook{nil}}, "hook without content"},
		"a broken hook":          {helmrelease.Release{Hooks: []*helmrelease.Hook{{Name: "h", Manifest: "{"}}}, `hook "h"`},
		"a broken manifest":      {helmrelease.Release{Manifest: "{"}, "manifest"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.release.Chart = &chart.Chart{Metadata: &chart.Metadata{Name: "web", Version: "1.0.0"}}
			checked := &Checked{Name: helmstore.Name{Namespace: "ns", Name: "web"}, State: Movable, Last: &helmstore.Revision{Release: &test.release}}
			if err := checked.translate(Options{}); err != nil {
				t.Fatal(err)
			}
			if checked.State != Refused || !strings.Contains(strings.Join(checked.Problems, ""), test.want) {
				t.Errorf("%s, problems %q, want %q", checked.State, checked.Problems, test.want)
			}
		})
	}
	missing := &Checked{Name: helmstore.Name{Namespace: "ns", Name: "web"}, State: Movable, Last: &helmstore.Revision{Release: &helmrelease.Release{}}}
	if err := missing.translate(Options{}); err != nil || missing.State != Refused {
		t.Errorf("without a chart: %s, error %v", missing.State, err)
	}
}
