package main

import "testing"

func TestLinesOf(t *testing.T) {
	t.Parallel()

	const log = `{"level":"info","msg":"not as wanted","reason":"\"level\":\"error\""}
{"level":"error","msg":"Reconciler error","name":"failing-001"}
{"level":"debug","msg":"error"}
panic: error
{"level":"error","msg":"Reconciler error","name":"failing-002"}
`
	if all, errors := linesOf([]byte(log)); all != 5 || errors != 2 {
		t.Errorf("there are %d lines, %d of them of level error, want 5 and 2", all, errors)
	}
}
