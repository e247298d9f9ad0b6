package cluster

import (
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/clusterextensions/operator-controller/test/internal/filelock"
)

const (
	// workDirPrefix starts the names of the working directories that are made
	// in the temporary directory.
	workDirPrefix = "operator-controller-cluster-"
	// workDirLock is held as long as the cluster that works in the directory.
	workDirLock = "lock"
	// workDirLogs is where logs go unless the caller names a place.
	workDirLogs = "logs"
)

// ErrDirInUse says that the directory given for a cluster has content that is
// not ours to remove.
var ErrDirInUse = errors.New("directory is not empty")

// workDir is the directory that holds everything a cluster writes.
type workDir struct {
	path string
	lock *filelock.Lock
}

// newWorkDir makes the named directory, which may exist but must be empty, or
// one in the temporary directory if there is no name.
func newWorkDir(path string) (*workDir, error) {
	if path == "" {
		removeAbandoned(os.TempDir())
		return newTempWorkDir()
	}
	path, err := filepath.Abs(path)
	if err != nil {
		return nil, fmt.Errorf("locating working directory: %w", err)
	}
	if err := os.MkdirAll(path, 0o700); err != nil {
		return nil, fmt.Errorf("making working directory: %w", err)
	}
	entries, err := os.ReadDir(path)
	if err != nil {
		return nil, fmt.Errorf("reading working directory: %w", err)
	}
	if len(entries) > 0 {
		return nil, fmt.Errorf("using %s as working directory: %w", path, ErrDirInUse)
	}
	return lockWorkDir(path)
}

func newTempWorkDir() (*workDir, error) {
	for {
		path, err := os.MkdirTemp("", workDirPrefix)
		if err != nil {
			return nil, fmt.Errorf("making working directory: %w", err)
		}
		dir, err := lockWorkDir(path)
		// Between the making of the lock file and its locking, another process
		// can take the directory for an abandoned one and remove it.
		if errors.Is(err, filelock.ErrHeld) || errors.Is(err, os.ErrNotExist) {
			continue
		}
		return dir, err
	}
}

func lockWorkDir(path string) (*workDir, error) {
	lock, err := filelock.Try(filepath.Join(path, workDirLock))
	if err != nil {
		return nil, err
	}
	return &workDir{path: path, lock: lock}, nil
}

// removeAbandoned removes the working directories of clusters whose process was
// killed: nobody holds their lock. A directory without a lock file is just being
// made, or was left on purpose because it has logs. Failures are left to the
// next start, because they are not about the cluster that is started now.
func removeAbandoned(parent string) {
	locks, err := filepath.Glob(filepath.Join(parent, workDirPrefix+"*", workDirLock))
	if err != nil {
		return
	}
	for _, path := range locks {
		lock, err := filelock.Try(path)
		if err != nil {
			continue
		}
		_ = os.RemoveAll(filepath.Dir(path))
		_ = lock.Release()
	}
}

func (d *workDir) join(elements ...string) string {
	return filepath.Join(append([]string{d.path}, elements...)...)
}

// remove removes the directory and all that is in it.
func (d *workDir) remove() error {
	err := os.RemoveAll(d.path)
	return errors.Join(err, d.lock.Release())
}

// removeAllButLogs leaves the logs, for people, and nothing else.
func (d *workDir) removeAllButLogs() error {
	entries, err := os.ReadDir(d.path)
	errs := []error{err}
	for _, entry := range entries {
		if entry.Name() != workDirLogs {
			errs = append(errs, os.RemoveAll(d.join(entry.Name())))
		}
	}
	return errors.Join(append(errs, d.lock.Release())...)
}
