package testkit

import "testing"

// sampled is one of how many values the race detector gets to see.
const sampled = 8

// WithoutRace skips a test under the race detector, for which it has nothing but work: the
// test measures what the detector takes too, or computes alone for long. Packages with such
// tests are run without the detector too, see the Makefile.
func WithoutRace(tb testing.TB) {
	tb.Helper()
	if underRace {
		tb.Skip("it is for a run without the race detector")
	}
}

// Sample is all of the values, but some under the race detector, to which one is like the
// other. Packages that draw samples are run without the detector too, see the Makefile.
func Sample[T any](values []T) []T {
	if !underRace {
		return values
	}
	var some []T
	for i := 0; i < len(values); i += sampled {
		some = append(some, values[i])
	}
	return some
}
