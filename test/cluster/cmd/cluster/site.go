package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"path/filepath"

	"github.com/clusterextensions/operator-controller/internal/atomicfile"
	"github.com/clusterextensions/operator-controller/test/cluster"
	"github.com/clusterextensions/operator-controller/test/internal/filelock"
)

// nextState is how the name of a state begins that is not complete.
const nextState = ".state-"

// site is the directory of a cluster that runs in the background. Its lock is
// held by the supervisor as long as that lives, so the state is never taken for
// true because it lies there.
type site struct {
	dir string
}

// state is what the supervisor tells the other commands.
type state struct {
	// Supervisor is the process id of the supervisor, which leads a process
	// group of its own.
	Supervisor int `json:"supervisor"`
	// Processes are the process ids of the components, by name.
	Processes map[string]int `json:"processes,omitempty"`
	// Kubeconfig is empty until the cluster can be used.
	Kubeconfig string `json:"kubeconfig,omitempty"`
	Kubectl    string `json:"kubectl,omitempty"`
	// Kubernetes is the minor version, such as 1.31.
	Kubernetes string `json:"kubernetes,omitempty"`
}

// newSite is the site at the directory, or at the default one if it is empty.
func newSite(dir string) (site, error) {
	if dir != "" {
		absolute, err := filepath.Abs(dir)
		return site{dir: absolute}, err
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		return site{}, fmt.Errorf("locating cache: %w", err)
	}
	return site{dir: filepath.Join(cache, "operator-controller", "cluster", "up")}, nil
}

func (s site) lockPath() string      { return filepath.Join(s.dir, "cluster.lock") }
func (s site) statePath() string     { return filepath.Join(s.dir, "state.json") }
func (s site) clusterDir() string    { return filepath.Join(s.dir, "cluster") }
func (s site) logDir() string        { return filepath.Join(s.dir, "logs") }
func (s site) supervisorLog() string { return filepath.Join(s.logDir(), "supervisor.log") }

// exists reports whether the directory is a site. Nothing is removed from one
// that is not.
func (s site) exists() bool {
	_, err := os.Stat(s.lockPath())
	return err == nil
}

// create makes the directory a site. It must be a site already, or empty, or
// missing.
func (s site) create() error {
	if s.exists() {
		return nil
	}
	if err := os.MkdirAll(s.dir, 0o700); err != nil {
		return fmt.Errorf("making directory: %w", err)
	}
	entries, err := os.ReadDir(s.dir)
	if err != nil {
		return fmt.Errorf("reading directory: %w", err)
	}
	if len(entries) > 0 {
		return fmt.Errorf("running a cluster in %s: %w", s.dir, cluster.ErrDirInUse)
	}
	lock, err := s.lock()
	if err != nil {
		return err
	}
	return lock.Release()
}

// lock takes the lock of the site. The error is filelock.ErrHeld while a
// supervisor lives.
func (s site) lock() (*filelock.Lock, error) {
	return filelock.Try(s.lockPath())
}

// running is the state that a living supervisor has written, and whether there
// is a supervisor at all.
func (s site) running() (state, bool, error) {
	if !s.exists() {
		return state{}, false, nil
	}
	lock, err := s.lock()
	if err == nil {
		return state{}, false, lock.Release()
	}
	if !errors.Is(err, filelock.ErrHeld) {
		return state{}, false, err
	}
	current, err := s.readState()
	return current, true, err
}

func (s site) readState() (state, error) {
	var current state
	content, err := os.ReadFile(s.statePath())
	if err != nil {
		return current, fmt.Errorf("reading state: %w", err)
	}
	if err := json.Unmarshal(content, &current); err != nil {
		return current, fmt.Errorf("reading state: %w", err)
	}
	return current, nil
}

// writeState replaces the state at once, because it is read at any time.
func (s site) writeState(current state) error {
	content, err := json.MarshalIndent(current, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding state: %w", err)
	}
	if err := atomicfile.Replace(s.statePath(), nextState, content); err != nil {
		return fmt.Errorf("writing state: %w", err)
	}
	return nil
}

// clear removes what a cluster leaves when its supervisor is killed, and
// nothing that a person has put beside it.
func (s site) clear() error {
	return errors.Join(
		os.RemoveAll(s.clusterDir()),
		os.RemoveAll(s.statePath()),
		atomicfile.Clear(s.dir, nextState),
	)
}

// remove clears the site and removes its logs, its lock, which the caller
// holds, and the directory unless something foreign is in it.
func (s site) remove(lock *filelock.Lock) error {
	err := errors.Join(s.clear(), os.RemoveAll(s.logDir()), os.Remove(s.lockPath()), lock.Release())
	_ = os.Remove(s.dir) // fails if it is not empty, as it should
	return err
}
