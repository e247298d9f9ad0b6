package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
)

// maxAnswer is more than anybody types to agree, in bytes.
const maxAnswer = 64

// Agrees reads the answer to a question that asks for y, or N by default. Whoever is asked may
// also press Ctrl-C, which ends ctx and is its error, or say nothing.
func Agrees(ctx context.Context, from io.Reader) (bool, error) {
	type answer struct {
		text string
		err  error
	}
	answers := make(chan answer, 1)
	go func() {
		text, err := bufio.NewReader(io.LimitReader(from, maxAnswer)).ReadString('\n')
		answers <- answer{strings.ToLower(strings.TrimSpace(text)), err}
	}()
	select {
	case given := <-answers:
		if given.err != nil && !errors.Is(given.err, io.EOF) {
			return false, fmt.Errorf("reading the answer: %w", given.err)
		}
		return given.text == "y" || given.text == "yes", nil
	case <-ctx.Done():
		return false, ctx.Err()
	}
}
