package plan

import (
	"context"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestPanicsAreFailures of one object, and not the end of the process.
func TestPanicsAreFailures(t *testing.T) {
	t.Parallel()
	steps := []*Step{{}, {}}
	steps[0].Key, steps[1].Key = object.Key{Name: "odd"}, object.Key{Name: "even"}
	failures := eachStep(t.Context(), steps, func(_ context.Context, s *Step) error {
		if s.Key.Name == "odd" {
			panic("no such key")
		}
		return nil
	}, "looking at")
	if len(failures) != 1 || failures[0].Object.Name != "odd" || !strings.Contains(failures[0].Err.Error(), "panic: no such key") {
		t.Errorf("failures = %v", failures)
	}
}
