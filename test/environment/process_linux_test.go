package environment_test

import (
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// TestTerminalReachesNoProcess: what Ctrl-C ends is asked to end by who has started the
// process, and once. Asked a second time, the controller ends at once, and not in order.
func TestTerminalReachesNoProcess(t *testing.T) {
	t.Parallel()
	process, err := environment.StartProcess("sleep", filepath.Join(t.TempDir(), "log"), exec.CommandContext(t.Context(), "sleep", "60"))
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = process.Kill() }()
	group, err := syscall.Getpgid(process.PID())
	if err != nil || group == syscall.Getpgrp() {
		t.Errorf("process group %d is that of whoever has started it: %v", group, err)
	}
}
