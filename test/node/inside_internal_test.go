//go:build linux

package node

import (
	"errors"
	"io/fs"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"testing"
)

func TestAbandonedRunsAreRemoved(t *testing.T) {
	t.Setenv("TMPDIR", t.TempDir())
	ended := exec.CommandContext(t.Context(), "true")
	if err := ended.Run(); err != nil {
		t.Fatal(err)
	}
	abandoned := filepath.Join(os.TempDir(), prefix+strconv.Itoa(ended.Process.Pid))
	running := filepath.Join(os.TempDir(), prefix+strconv.Itoa(os.Getpid()))
	kept := filepath.Join(os.TempDir(), prefix+"logs-"+strconv.Itoa(ended.Process.Pid))
	for _, dir := range []string{abandoned, running, kept} {
		if err := os.MkdirAll(logsDir(dir), 0o700); err != nil {
			t.Fatal(err)
		}
	}
	removeAbandoned()
	if _, err := os.Stat(abandoned); !errors.Is(err, fs.ErrNotExist) {
		t.Errorf("what a run has left whose process has ended: %v", err)
	}
	for _, dir := range []string{running, kept} {
		if _, err := os.Stat(dir); err != nil {
			t.Errorf("what is of another, or to be read: %v", err)
		}
	}
}

func TestSettingsFillEveryFile(t *testing.T) {
	t.Parallel()
	s := newSettings(filepath.Join(t.TempDir(), prefix+"1"))
	if err := s.write(); err != nil {
		t.Fatal(err)
	}
	for name := range files {
		if _, err := os.Stat(filepath.Join(s.Dir, name)); err != nil {
			t.Error(err)
		}
	}
	if _, err := s.fill("broken", "{{.Nothing}}"); err == nil {
		t.Error("a setting that there is not was filled in")
	}
}
