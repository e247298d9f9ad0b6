package testkit

import (
	"context"
	"errors"
	"testing"
	"time"
)

// Eventually waits until a check holds, for as long as the limit says, and fails the
// test with what was amiss at last. A check that takes long is made at most half of the
// time.
func Eventually(tb testing.TB, limit time.Duration, what string, check func(context.Context) error) {
	tb.Helper()
	ctx, cancel := context.WithTimeout(tb.Context(), limit)
	defer cancel()
	var amiss error
	for {
		began := time.Now()
		err := check(ctx)
		if err == nil {
			return
		}
		if ctx.Err() == nil {
			amiss = err
		}
		select {
		case <-ctx.Done():
			tb.Fatalf("%s: %v", what, amiss)
		case <-time.After(max(50*time.Millisecond, time.Since(began))):
		}
	}
}

var errNotYet = errors.New("it did not happen")

// Await is [Eventually] for what either holds or does not.
func Await(tb testing.TB, limit time.Duration, what string, holds func() bool) {
	tb.Helper()
	Eventually(tb, limit, what, func(context.Context) error {
		if holds() {
			return nil
		}
		return errNotYet
	})
}
