package migrate

import (
	"testing"

	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/cli"
)

// Who moves one operator is told when all others are without classic OLM meanwhile, and who completes or takes back
// a move is asked about it by its name.
func TestQuestions(t *testing.T) {
	t.Parallel()
	for mode, want := range map[classic.Mode]string{
		classic.Quiet: "Move 2 operators, with classic OLM stopped meanwhile?",
		classic.Live:  "Move 2 operators?",
	} {
		o := run{mode: cli.NewChoice("mode", mode)}
		if got := o.question(2); got != want {
			t.Errorf("%s: %s", mode, got)
		}
	}
	o := ending{question: "Give %s back?"}
	if got := o.asks([]string{"one", "two"}); got != "Give one, two back?" {
		t.Errorf("the end: %s", got)
	}
}
