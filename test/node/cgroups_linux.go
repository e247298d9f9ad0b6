package node

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"time"
)

const cgroupMount = "/sys/fs/cgroup"

// isUnified says that the host has cgroups v2, and nothing else.
func isUnified() bool {
	_, err := os.Stat(filepath.Join(cgroupMount, "cgroup.controllers"))
	return err == nil
}

// cgroupRoots are where a cgroup has a directory: one for each hierarchy of v1, or one.
func cgroupRoots() ([]string, error) {
	if isUnified() {
		return []string{cgroupMount}, nil
	}
	entries, err := os.ReadDir(cgroupMount)
	if err != nil {
		return nil, fmt.Errorf("looking for cgroups: %w", err)
	}
	var roots []string
	for _, entry := range entries {
		// Several controllers can share a hierarchy; links lead there from their names.
		if entry.IsDir() {
			roots = append(roots, filepath.Join(cgroupMount, entry.Name()))
		}
	}
	return roots, nil
}

func cgroupPatterns() []string {
	return []string{filepath.Join(cgroupMount, prefix+"[0-9]*"), filepath.Join(cgroupMount, "*", prefix+"[0-9]*")}
}

// makeCgroups makes the cgroup below which all pods of a run are.
func makeCgroups(name string) error {
	roots, err := cgroupRoots()
	if err != nil {
		return err
	}
	for _, root := range roots {
		dir := filepath.Join(root, name)
		if err := os.MkdirAll(dir, 0o755); err != nil { //nolint:gosec // as all cgroups
			return fmt.Errorf("making a cgroup: %w", err)
		}
		if !isUnified() {
			continue
		}
		// What pods are limited by is passed on from above.
		for _, parent := range []string{root, dir} {
			control := filepath.Join(parent, "cgroup.subtree_control")
			if err := os.WriteFile(control, []byte("+cpu +cpuset +memory +pids"), 0o600); err != nil {
				return fmt.Errorf("passing on the controllers of cgroups: %w", err)
			}
		}
	}
	return nil
}

// removeCgroups removes a cgroup and all below. The kernel may take a moment to notice
// that their last processes have ended.
func removeCgroups(name string) error {
	roots, err := cgroupRoots()
	if err != nil {
		return err
	}
	const tries = 50
	for range tries {
		var errs []error
		for _, root := range roots {
			errs = append(errs, removeCgroup(filepath.Join(root, name)))
		}
		if err = errors.Join(errs...); err == nil {
			return nil
		}
		time.Sleep(100 * time.Millisecond)
	}
	return err
}

// removeCgroup removes the deepest first; the files in them cannot be removed.
func removeCgroup(dir string) error {
	var dirs []string
	err := filepath.WalkDir(dir, func(path string, entry fs.DirEntry, err error) error {
		if err == nil && entry.IsDir() {
			dirs = append(dirs, path)
		}
		return err
	})
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	for _, path := range slices.Backward(dirs) {
		if err := os.Remove(path); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return fmt.Errorf("removing a cgroup: %w", err)
		}
	}
	return nil
}
