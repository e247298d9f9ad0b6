package main

import "testing"

func TestErrorLines(t *testing.T) {
	t.Parallel()

	const log = `{"level":"info","msg":"not as wanted","reason":"\"level\":\"error\""}
{"level":"error","msg":"Reconciler error","name":"failing-001"}
{"level":"debug","msg":"error"}
panic: error
{"level":"error","msg":"Reconciler error","name":"failing-002"}
`
	if got := errorLines([]byte(log)); got != 2 {
		t.Errorf("there are %d lines of level error, want 2", got)
	}
}
