package child_test

import (
	"errors"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/test/cluster/internal/child"
)

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

func eventually(condition func() bool) bool {
	for range 500 {
		if condition() {
			return true
		}
		time.Sleep(10 * time.Millisecond)
	}
	return false
}
