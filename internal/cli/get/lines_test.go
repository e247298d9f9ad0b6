package get

import (
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/overview"
)

// TestMessagesAreCut has a message that programs get whole.
func TestMessagesAreCut(t *testing.T) {
	t.Parallel()
	row := cells(overview.Row{Name: "x", Message: strings.Repeat("word ", maxMessage)})
	if last := row[len(row)-1]; len(last) > maxMessage || !strings.HasSuffix(last, "…") {
		t.Errorf("got %d bytes: %s", len(last), last)
	}
}
