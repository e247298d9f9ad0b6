package filelock_test

import (
	"context"
	"errors"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/test/internal/filelock"
)

func TestTryExcludesASecondHolder(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	lock := take(t, path)

	if _, err := filelock.Try(path); !errors.Is(err, filelock.ErrHeld) {
		t.Fatalf("second Try: got error %v, want %v", err, filelock.ErrHeld)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
	take(t, path)
}

func TestTryIgnoresALockOnARemovedFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	take(t, path)

	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	take(t, path)
}

func TestTryReportsAMissingDirectory(t *testing.T) {
	t.Parallel()
	_, err := filelock.Try(filepath.Join(t.TempDir(), "missing", "lock"))
	if !errors.Is(err, os.ErrNotExist) {
		t.Fatalf("got error %v, want %v", err, os.ErrNotExist)
	}
}

func TestWaitTakesTheLockOnceItIsFree(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	held := take(t, path)
	time.AfterFunc(50*time.Millisecond, func() { _ = held.Release() })

	lock, err := filelock.Wait(t.Context(), path)
	if err != nil {
		t.Fatal(err)
	}
	if err := lock.Release(); err != nil {
		t.Fatal(err)
	}
}

func TestWaitEndsWithItsContext(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "lock")
	take(t, path)
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Millisecond)
	defer cancel()

	if _, err := filelock.Wait(ctx, path); !errors.Is(err, context.DeadlineExceeded) {
		t.Fatalf("got error %v, want %v", err, context.DeadlineExceeded)
	}
}

func take(t *testing.T, path string) *filelock.Lock {
	t.Helper()
	lock, err := filelock.Try(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = lock.Release() }) // released twice where the test did
	return lock
}
