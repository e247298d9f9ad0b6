package storeddata_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/preflight/storeddata"
)

func TestCheck(t *testing.T) {
	t.Parallel()
	for name, tc := range upgrades {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			stored := widget(t, "w", tc.Spec)
			unchanged := stored.DeepCopy()
			problems := validator(t, widgets(t, tc.Old), widgets(t, tc.Updated)).Check(t.Context(), stored)
			if diff := cmp.Diff(tc.Want, lines(problems)); diff != "" {
				t.Error(diff)
			}
			if diff := cmp.Diff(unchanged, stored); diff != "" {
				t.Error("the object was changed:", diff)
			}
		})
	}
}

func lines(problems []storeddata.Problem) []string {
	var lines []string
	for _, problem := range problems {
		lines = append(lines, problem.String())
	}
	return lines
}
