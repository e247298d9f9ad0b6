package cli

import (
	"context"
	"errors"
	"io"
	"strings"
	"testing"
)

func TestAgrees(t *testing.T) {
	t.Parallel()
	for answer, want := range map[string]bool{
		"y\n": true, "Yes\n": true, "yes": true, "  y\r\n": true,
		"": false, "\n": false, "n\n": false, "yesterday\n": false, strings.Repeat(" ", maxAnswer) + "y\n": false,
	} {
		got, err := Agrees(t.Context(), strings.NewReader(answer))
		if err != nil || got != want {
			t.Errorf("%q: %t, %v, want %t", answer, got, err, want)
		}
	}
	silent, _ := io.Pipe()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if got, err := Agrees(ctx, silent); got || !errors.Is(err, context.Canceled) {
		t.Errorf("silence: %t, %v", got, err)
	}
}
