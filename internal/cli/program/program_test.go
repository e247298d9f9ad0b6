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
		isEnded bool
		err     error
		want    string
	}{
		"a signal":            {true, waiting, "interrupted"},
		"an error besides it": {true, other, "other"},
		"no signal":           {false, waiting, "reading: context canceled"},
	} {
		ctx := t.Context()
		if test.isEnded {
			ctx = ended
		}
		err := interrupted(ctx, test.err)
		if err == nil || err.Error() != test.want || (test.want == "interrupted" && Code(err) != Failed) {
			t.Errorf("%s: got %v, want %s", name, err, test.want)
		}
	}
	if err := interrupted(ended, nil); err != nil {
		t.Errorf("a command that is done: %v", err)
	}
}

// What an error quotes does nothing to a terminal.
func TestErrorsAreHarmless(t *testing.T) {
	t.Parallel()
	err := fmt.Errorf("olm.bundle \"a\x1b[2J\u009b1m\u202e\": %w", &helpError{err: errors.New("wrong"), path: "p"})
	const want = "olm.bundle \"a\ufffd[2J\ufffd1m\ufffd\": wrong\nTry 'p --help'."
	if got := shown(err); got != want {
		t.Errorf("got %q, want %q", got, want)
	}
}
