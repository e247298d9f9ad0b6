package child_test

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/test/internal/child"
)

// noGrace and longGrace are bounds that a test hits at once or never.
const (
	noGrace   = 50 * time.Millisecond
	longGrace = time.Minute
)

func TestGroupReportsAProcessThatEnds(t *testing.T) {
	t.Parallel()
	group := newGroup(t)
	run(t, group, "seq 1 40; echo no such flag >&2; exit 3")

	<-group.Lost()
	var exit *child.ExitError
	if !errors.As(group.Err(), &exit) {
		t.Fatalf("got error %v, want a *child.ExitError", group.Err())
	}
	if exit.Reason != "exit status 3" {
		t.Errorf("got reason %q, want exit status 3", exit.Reason)
	}
	if last := exit.Tail[len(exit.Tail)-1]; last != "no such flag" {
		t.Errorf("got last line %q, want what the process wrote last", last)
	}
	if len(exit.Tail) > 20 {
		t.Errorf("got %d lines, want a bounded tail", len(exit.Tail))
	}
	for _, want := range []string{"script", exit.Log, "no such flag"} {
		if !strings.Contains(exit.Error(), want) {
			t.Errorf("message %q lacks %q", exit.Error(), want)
		}
	}
}

func TestGroupBoundsTheTailOfLongLines(t *testing.T) {
	t.Parallel()
	group := newGroup(t)
	run(t, group, "head -c 100000 /dev/zero | tr '\\0' x; exit 1")

	<-group.Lost()
	if got := len(group.Err().Error()); got > 9000 {
		t.Errorf("got a message of %d bytes, want it bounded", got)
	}
}

func TestStopIsNotALoss(t *testing.T) {
	t.Parallel()
	group := newGroup(t)
	process := run(t, group, "exec sleep 600")
	process.Stop(longGrace)
	process.Stop(longGrace)

	if err := group.Err(); err != nil {
		t.Errorf("got error %v for a process that was stopped", err)
	}
	wantGone(t, process.PID())
}

func TestStopKillsAProcessThatIgnoresIt(t *testing.T) {
	t.Parallel()
	group := newGroup(t)
	process := run(t, group, "trap '' TERM; while :; do sleep 0.05; done")
	process.Stop(noGrace)

	wantGone(t, process.PID())
}

func TestStartGivesTheCommandNothingButItsEnvironment(t *testing.T) {
	t.Parallel()
	group := newGroup(t)
	dir := t.TempDir()
	log := filepath.Join(dir, "log")
	_, err := group.Start(child.Command{
		Name: "env", Path: "/usr/bin/env", Dir: dir, Env: []string{"ONLY=this"}, Log: log,
	})
	if err != nil {
		t.Fatal(err)
	}
	<-group.Lost()
	content, err := os.ReadFile(log)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff("ONLY=this\n", string(content)); diff != "" {
		t.Errorf("environment (-want +got):\n%s", diff)
	}
}

func TestStartReportsACommandThatCannotRun(t *testing.T) {
	t.Parallel()
	group := newGroup(t)
	dir := t.TempDir()
	_, err := group.Start(child.Command{
		Name: "missing", Path: filepath.Join(dir, "missing"), Log: filepath.Join(dir, "log"),
	})
	if !errors.Is(err, os.ErrNotExist) {
		t.Errorf("got error %v, want %v", err, os.ErrNotExist)
	}
}

func TestCloseKillsWhatStillRuns(t *testing.T) {
	t.Parallel()
	group := newGroup(t)
	process := run(t, group, "exec sleep 600")
	group.Close()

	if !eventually(func() bool { return isGone(process.PID()) }) {
		process.Stop(noGrace)
		t.Error("process outlived its group")
	}
	if _, err := group.Start(child.Command{}); !errors.Is(err, child.ErrClosed) {
		t.Errorf("Start after Close: got error %v, want %v", err, child.ErrClosed)
	}
}

func newGroup(t *testing.T) *child.Group {
	t.Helper()
	group := child.NewGroup()
	t.Cleanup(group.Close)
	return group
}

func run(t *testing.T, group *child.Group, script string) *child.Process {
	t.Helper()
	dir := t.TempDir()
	process, err := group.Start(child.Command{
		Name: "script", Path: "/bin/sh", Args: []string{"-c", script},
		Dir: dir, Env: os.Environ(), Log: filepath.Join(dir, "log"),
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { process.Stop(noGrace) })
	return process
}

func wantGone(t *testing.T, pid int) {
	t.Helper()
	if !isGone(pid) {
		t.Errorf("process %d still runs", pid)
	}
}

func isGone(pid int) bool {
	return errors.Is(syscall.Kill(pid, 0), syscall.ESRCH)
}

func eventually(condition func() bool) bool {
	for range 500 {
		if condition() {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}
