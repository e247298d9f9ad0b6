package measure

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Usage is what a process took so far.
type Usage struct {
	// CPUSeconds is the time of all threads, in the process and in the kernel.
	CPUSeconds float64 `json:"cpuSeconds"`

	// PeakBytes is the most memory that was resident, ResidentBytes what is.
	PeakBytes     int64 `json:"peakBytes"`
	ResidentBytes int64 `json:"residentBytes"`

	// AnonymousBytes and FileBytes are the parts of ResidentBytes that the
	// process made itself, and that are pages of files such as its own binary.
	AnonymousBytes int64 `json:"anonymousBytes"`
	FileBytes      int64 `json:"fileBytes"`
}

// ticksPerSecond is the unit in which the kernel gives CPU time to programs.
const ticksPerSecond = 100

// Of asks the kernel what a running process took.
func Of(pid int) (Usage, error) {
	var used Usage
	var err error
	if used.CPUSeconds, err = cpuSeconds(pid); err != nil {
		return Usage{}, err
	}
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return Usage{}, err
	}
	for field, bytes := range map[string]*int64{
		"VmHWM": &used.PeakBytes, "VmRSS": &used.ResidentBytes,
		"RssAnon": &used.AnonymousBytes, "RssFile": &used.FileBytes,
	} {
		if *bytes, err = bytesOf(status, field); err != nil {
			return Usage{}, err
		}
	}
	return used, nil
}

// cpuSeconds reads the 14th and 15th field of the process's line. The second is
// its name, in parentheses, and may have spaces.
func cpuSeconds(pid int) (float64, error) {
	line, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	const user, system = 11, 12
	fields := bytes.Fields(line[bytes.LastIndexByte(line, ')')+1:])
	if len(fields) <= system {
		return 0, fmt.Errorf("the kernel's account of process %d is %q", pid, line)
	}
	ticks := 0
	for _, field := range [][]byte{fields[user], fields[system]} {
		some, err := strconv.Atoi(string(field))
		if err != nil {
			return 0, fmt.Errorf("reading the CPU time of process %d: %w", pid, err)
		}
		ticks += some
	}
	return float64(ticks) / ticksPerSecond, nil
}

func bytesOf(status []byte, field string) (int64, error) {
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(field+":")); ok {
			var kilobytes int64
			_, err := fmt.Sscanf(string(rest), "%d kB", &kilobytes)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("the kernel does not tell %s", field)
}

// Mebibytes is a size in the unit of results.
func Mebibytes(bytes int64) float64 { return float64(bytes) / (1 << 20) }
