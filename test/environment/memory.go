package environment

import (
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
)

// MemoryGroup is a group of processes that together may have no more than a limit of
// memory, as a container has: the kernel kills one that goes beyond it.
type MemoryGroup struct {
	dir                string
	limit, peak, kills string // files in dir
}

// ErrNoMemoryGroups says that this machine does not let the caller make one.
var ErrNoMemoryGroups = errors.New("the memory of processes cannot be limited here, which takes root and a writable /sys/fs/cgroup")

// NewMemoryGroup makes a group with a limit in bytes. The caller removes it with
// [MemoryGroup.Close] when its processes have ended.
func NewMemoryGroup(limit int64) (*MemoryGroup, error) {
	root, group := "/sys/fs/cgroup/memory", &MemoryGroup{limit: "memory.limit_in_bytes", peak: "memory.max_usage_in_bytes", kills: "memory.oom_control"}
	// Version 2 has one tree for all, version 1 one for each of what it controls.
	if _, err := os.Stat("/sys/fs/cgroup/cgroup.controllers"); err == nil {
		root, group = "/sys/fs/cgroup", &MemoryGroup{limit: "memory.max", peak: "memory.peak", kills: "memory.events"}
	}
	group.dir = filepath.Join(root, fmt.Sprintf("operator-controller-%d", os.Getpid()))
	err := os.Mkdir(group.dir, 0o750)
	if err == nil {
		err = os.WriteFile(filepath.Join(group.dir, group.limit), []byte(strconv.FormatInt(limit, 10)), 0o600)
	}
	if err != nil {
		_ = os.Remove(group.dir)
		return nil, fmt.Errorf("%w: %w", ErrNoMemoryGroups, err)
	}
	return group, nil
}

// command is in the group from its first moment on; in none if that is nil.
func (g *MemoryGroup) command(name string, args ...string) *exec.Cmd {
	if g == nil {
		return exec.Command(name, args...) //nolint:noctx,gosec // outlives the start; our own binary
	}
	const script = `echo $$ >"$0" && exec "$@"`
	return exec.Command("sh", append([]string{"-c", script, filepath.Join(g.dir, "cgroup.procs"), name}, args...)...) //nolint:noctx,gosec // as above
}

// Peak is the most memory that the group ever had, in bytes, files that the kernel
// keeps for it included.
func (g *MemoryGroup) Peak() (int64, error) {
	text, err := os.ReadFile(filepath.Join(g.dir, g.peak))
	if err != nil {
		return 0, fmt.Errorf("reading how much memory was used: %w", err)
	}
	return strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
}

// Resident is the most memory that the processes of the group which run now ever had
// mapped, in bytes: without the files that the kernel keeps for them as long as nobody
// else needs the memory.
func (g *MemoryGroup) Resident() (int64, error) {
	running, err := os.ReadFile(filepath.Join(g.dir, "cgroup.procs"))
	if err != nil {
		return 0, fmt.Errorf("reading which processes there are: %w", err)
	}
	var sum int64
	for pid := range strings.FieldsSeq(string(running)) {
		resident, err := mostResident(pid)
		if err != nil {
			return 0, err
		}
		sum += resident
	}
	return sum, nil
}

// mostResident is the most memory that a process which runs ever had mapped, in bytes.
func mostResident(pid string) (int64, error) {
	status, err := os.ReadFile(filepath.Join("/proc", pid, "status"))
	if err != nil {
		return 0, fmt.Errorf("reading how much memory process %s had: %w", pid, err)
	}
	_, rest, _ := strings.Cut(string(status), "VmHWM:")
	amount, _, _ := strings.Cut(strings.TrimSpace(rest), " ")
	kibibytes, err := strconv.ParseInt(amount, 10, 64)
	if err != nil {
		return 0, fmt.Errorf("reading how much memory process %s had: %w", pid, err)
	}
	return kibibytes << 10, nil
}

// Kills is how many processes of the group the kernel has killed for their memory.
func (g *MemoryGroup) Kills() (int, error) {
	text, err := os.ReadFile(filepath.Join(g.dir, g.kills))
	if err != nil {
		return 0, fmt.Errorf("reading how many processes were killed: %w", err)
	}
	for line := range strings.Lines(string(text)) {
		if key, value, _ := strings.Cut(strings.TrimSpace(line), " "); key == "oom_kill" {
			return strconv.Atoi(value)
		}
	}
	return 0, fmt.Errorf("%s has no oom_kill", filepath.Join(g.dir, g.kills))
}

// Close removes the group.
func (g *MemoryGroup) Close() error { return os.Remove(g.dir) }
