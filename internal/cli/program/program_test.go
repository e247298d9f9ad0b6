package program

import (
	"context"
	"errors"
	"fmt"
	"testing"
)

// A signal is what people are told, unless something else was wrong.
func TestInterrupted(t *testing.T) {
	t.Parallel()
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	waiting := &UsageError{Err: fmt.Errorf("reading: %w", context.Canceled)}
	other := errors.New("other")
	for name, test := range map[string]struct {
		ctx  context.Context
		err  error
		want string
	}{
		"a signal":            {ended, waiting, "interrupted"},
		"an error besides it": {ended, other, "other"},
		"no signal":           {t.Context(), waiting, "reading: context canceled"},
	} {
		err := interrupted(test.ctx, test.err)
		if err == nil || err.Error() != test.want || (test.want == "interrupted" && Code(err) != Failed) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
	if err := interrupted(ended, nil); err != nil {
		t.Errorf("a command that is done: %v", err)
	}
}
