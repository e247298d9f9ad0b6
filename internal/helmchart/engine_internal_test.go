package helmchart

import (
	"errors"
	"os/exec"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// TestWhatAChartIsJudgedFor has processes end for want of what their chart may have, and for want
// of what the machine has, which is worth another try.
func TestWhatAChartIsJudgedFor(t *testing.T) {
	t.Parallel()
	const (
		memory = "runtime: out of memory: cannot allocate 2147483648-byte block (3866624 in use)\nfatal error: out of memory\n"
		stack  = "runtime: goroutine stack exceeds 67108864-byte limit\nfatal error: stack overflow\n"
		little = "fatal error: runtime: cannot allocate memory\n"
		thread = "runtime: failed to create new OS thread (have 4 already; errno=11)\nfatal error: newosproc\n"
	)
	for name, test := range map[string]struct {
		ends      string // in a shell
		complaint string
		want      string
		isJudged  bool
	}{
		"memory":                       {"exit 2", memory, "more than 268435456 bytes of memory", true},
		"a little more memory":         {"exit 2", little, "more than 268435456 bytes of memory", true},
		"the stack":                    {"exit 2", stack, "more than 67108864 bytes of stack", true},
		"the time":                     {"exit 3", "", "more than 30s on a processor", true},
		"a thread":                     {"exit 2", thread, "failed to create new OS thread", false},
		"the memory of the container":  {"kill -KILL $$", "", "its process has ended without an answer: signal: killed", false},
		"its end by somebody":          {"kill -TERM $$", "", "signal: terminated", false},
		"its start":                    {"exit 1", "bounding the memory: fork: cannot allocate memory\n", "bounding the memory", false},
		"words of a process that goes": {"exit 1", memory, "out of memory", false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ended := exec.CommandContext(t.Context(), "sh", "-c", test.ends).Run()
			err := New().explain(ended, test.complaint)
			if isJudged := errors.As(err, new(*bundle.InvalidError)); isJudged != test.isJudged || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one with %q that judges the chart: %t", err, test.want, test.isJudged)
			}
		})
	}
}
