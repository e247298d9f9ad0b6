package main

import (
	"errors"
	"strings"
	"testing"
)

func TestConvert(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason        string
		in, out, rest string
		failed        bool
	}{
		"Results": {
			reason: "every result is one line, with the package it is from",
			in: "goos: linux\npkg: example.com/a\ncpu: fast\nBenchmarkX/of_10-2 \t 100\t 12.5 ns/op\t 3 allocs/op\nPASS\nok  \texample.com/a\t1s\n" +
				"pkg: example.com/b\nBenchmarkY \t 1\t 7 MB/s\nok  \texample.com/b\t1s\n",
			out: `{"package":"example.com/a","benchmark":"X/of_10-2","runs":100,"values":{"allocs/op":3,"ns/op":12.5}}` + "\n" +
				`{"package":"example.com/b","benchmark":"Y","runs":1,"values":{"MB/s":7}}` + "\n",
		},
		"Nothing": {
			reason: "a package without benchmarks says nothing",
			in:     "?   \texample.com/a\t[no test files]\nPASS\nok  \texample.com/b\t1s\n",
		},
		"Failure": {
			reason: "why a benchmark failed must not get lost",
			in:     "pkg: example.com/a\n--- FAIL: BenchmarkX\n    x_test.go:1: broken\nFAIL\texample.com/a\t1s\n",
			rest:   "--- FAIL: BenchmarkX\n    x_test.go:1: broken\nFAIL\texample.com/a\t1s\n", failed: true,
		},
		"OtherText": {
			reason: "what only looks like a result is none",
			in:     "BenchmarkX\nBenchmarkX-2 fast 1 ns/op\nBenchmarkX-2 1 quick ns/op\nBenchmarkX-2 1 1\n",
			rest:   "BenchmarkX\nBenchmarkX-2 fast 1 ns/op\nBenchmarkX-2 1 quick ns/op\nBenchmarkX-2 1 1\n",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var out, rest strings.Builder
			err := convert(strings.NewReader(tt.in), &out, &rest)
			if out.String() != tt.out || rest.String() != tt.rest || errors.Is(err, errFailed) != tt.failed {
				t.Errorf("%s: got %v, output\n%s\nand rest\n%s", tt.reason, err, out.String(), rest.String())
			}
		})
	}
}
