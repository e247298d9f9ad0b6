package main

import (
	"context"
	"errors"
	"fmt"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/test/internal/filelock"
)

const (
	// downGrace is how long a supervisor may take to stop its cluster; it kills
	// what does not end in about half of it.
	downGrace = 20 * time.Second
	// killGrace is how long killed processes may take to be gone.
	killGrace = 5 * time.Second
)

func newDownCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "down",
		Short: "Stop the cluster that up has started and remove all it has left",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := newSite(*dir)
			if err != nil {
				return err
			}
			return down(cmd.Context(), s)
		},
	}
}

// down stops the cluster of the site, if one is up, and removes the site.
func down(ctx context.Context, s site) error {
	if !s.exists() {
		return nil
	}
	lock, err := s.lock()
	if errors.Is(err, filelock.ErrHeld) {
		lock, err = stopSupervisor(ctx, s)
	}
	if err != nil {
		return err
	}
	return s.remove(lock)
}

// stopSupervisor stops the supervisor and returns the lock that it held.
func stopSupervisor(ctx context.Context, s site) (*filelock.Lock, error) {
	current, err := s.readState()
	if err != nil {
		return nil, err
	}
	// The lock was held a moment ago, so the process id is that of the holder.
	if err := syscall.Kill(current.Supervisor, syscall.SIGTERM); err != nil {
		return nil, fmt.Errorf("stopping supervisor %d: %w", current.Supervisor, err)
	}
	lock, err := waitForLock(ctx, s, downGrace)
	if !errors.Is(err, context.DeadlineExceeded) {
		return lock, err
	}
	// Its process group: where the kernel does not kill the components together
	// with the supervisor, they are in it.
	if err := syscall.Kill(-current.Supervisor, syscall.SIGKILL); err != nil {
		return nil, fmt.Errorf("killing supervisor %d: %w", current.Supervisor, err)
	}
	if lock, err = waitForLock(ctx, s, killGrace); err != nil {
		return nil, err
	}
	awaitGone(current.Processes)
	return lock, nil
}

func waitForLock(ctx context.Context, s site, atMost time.Duration) (*filelock.Lock, error) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	return filelock.Wait(ctx, s.lockPath())
}

// awaitGone waits until killed processes have ended, because until then they
// write to the directory that is removed next.
func awaitGone(processes map[string]int) {
	deadline := time.Now().Add(killGrace)
	for _, pid := range processes {
		for !errors.Is(syscall.Kill(pid, 0), syscall.ESRCH) && time.Now().Before(deadline) {
			time.Sleep(10 * time.Millisecond)
		}
	}
}
