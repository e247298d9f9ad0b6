package cluster_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"syscall"
	"testing"
)

// The kernel ends the components with their parent; the next cluster removes
// the files that nobody could.
func TestNothingOutlivesAKilledParent(t *testing.T) {
	t.Parallel()
	needClusters(t)
	temp := t.TempDir()
	killHolder(t, temp)
	abandoned, err := filepath.Glob(filepath.Join(temp, "*", "etcd"))
	if err != nil || len(abandoned) != 1 {
		t.Fatalf("got %v and error %v, want the data of the killed cluster", abandoned, err)
	}
	killHolder(t, temp)
	if _, err := os.Stat(abandoned[0]); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("data of the killed cluster is left: %v", err)
	}
}

// killHolder starts a process that holds a cluster, kills it, and wants its
// cluster to end.
func killHolder(t *testing.T, temp string) {
	t.Helper()
	executable, err := os.Executable()
	if err != nil {
		t.Fatal(err)
	}
	var stderr bytes.Buffer
	holder := exec.CommandContext(t.Context(), executable)
	holder.Env = append(os.Environ(), holderVariable+"=1", "TMPDIR="+temp)
	holder.Stderr = &stderr
	stdout, err := holder.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := holder.Start(); err != nil {
		t.Fatal(err)
	}
	components := map[string]int{}
	decodeErr := json.NewDecoder(stdout).Decode(&components)
	if err := holder.Process.Kill(); err != nil {
		t.Error(err)
	}
	_ = holder.Wait() // it was killed
	if decodeErr != nil || len(components) == 0 {
		t.Fatalf("holder printed %v: %v\n%s", components, decodeErr, &stderr)
	}
	for name, pid := range components {
		eventually(t, func() error {
			if errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) {
				return nil
			}
			return fmt.Errorf("%s (process %d) still runs", name, pid)
		})
	}
}
