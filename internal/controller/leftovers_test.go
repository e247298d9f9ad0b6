package controller

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// TestLeftoversAreToldUntilTheNextBundle (F16) has Ready list what adopted objects keep as long as the bundle that has
// adopted them is installed.
func TestLeftoversAreToldUntilTheNextBundle(t *testing.T) {
	t.Parallel()
	r := &Reconciler{}
	first, second := &installation.Revision{Bundle: bundle.Identity{Name: "a.v1"}}, &installation.Revision{Bundle: bundle.Identity{Name: "a.v2"}}
	fields := []string{`Deployment "d" keeps spec.replicas`}
	for _, step := range []struct {
		name    string
		outcome Outcome
		want    []string
	}{
		{"nothing is installed", Outcome{}, nil},
		{"it adopts", Outcome{Installed: first, Applied: &installation.Result{Leftovers: fields}}, fields},
		{"at rest", Outcome{Installed: first}, fields},
		{"another bundle", Outcome{Installed: second}, nil},
		{"at rest again", Outcome{Installed: first}, fields},
		{"it is applied again", Outcome{Installed: first, Applied: &installation.Result{}}, nil},
		{"at rest after that", Outcome{Installed: first}, nil},
	} {
		step.outcome.Owner = object.Owner{Name: "a"}
		r.noteLeftovers(&step.outcome)
		if diff := cmp.Diff(step.want, step.outcome.Leftovers); diff != "" {
			t.Errorf("%s (-want +got):\n%s", step.name, diff)
		}
	}
}
