package filelock

import (
	"context"
	"errors"
	"fmt"
	"os"
	"syscall"
	"time"
)

// ErrHeld says that another holder has the lock.
var ErrHeld = errors.New("lock is held")

// pollInterval is how often Wait tries again. flock(2) can block instead, but
// then nothing could cancel it.
const pollInterval = 100 * time.Millisecond

// Lock is a held lock. It ends with Release or with the process.
type Lock struct {
	file *os.File
}

// Try takes the lock at path, creating the file if it is missing. The error is
// ErrHeld if another holder has it, in this process or another.
func Try(path string) (*Lock, error) {
	for {
		file, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
		if err != nil {
			return nil, fmt.Errorf("opening lock: %w", err)
		}
		current, err := lockCurrent(file)
		if current {
			return &Lock{file: file}, nil
		}
		_ = file.Close() // nothing was written
		if err != nil {
			return nil, fmt.Errorf("locking %s: %w", path, err)
		}
	}
}

// lockCurrent locks the file and reports whether its path still leads to it:
// the previous holder may have removed it between the opening and the locking,
// and such a lock would exclude nobody.
func lockCurrent(file *os.File) (bool, error) {
	err := syscall.Flock(int(file.Fd()), syscall.LOCK_EX|syscall.LOCK_NB)
	if errors.Is(err, syscall.EWOULDBLOCK) {
		return false, ErrHeld
	}
	if err != nil {
		return false, err
	}
	locked, err := file.Stat()
	if err != nil {
		return false, err
	}
	named, err := os.Stat(file.Name())
	if errors.Is(err, os.ErrNotExist) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	return os.SameFile(locked, named), nil
}

// Wait takes the lock at path as soon as it is free, or returns the error of
// ctx.
func Wait(ctx context.Context, path string) (*Lock, error) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		lock, err := Try(path)
		if !errors.Is(err, ErrHeld) {
			return lock, err
		}
		select {
		case <-ctx.Done():
			return nil, fmt.Errorf("waiting for lock %s: %w", path, ctx.Err())
		case <-ticker.C:
		}
	}
}

// Release ends the lock and leaves its file in place.
func (l *Lock) Release() error {
	return l.file.Close()
}
