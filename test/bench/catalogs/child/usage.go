package main

import (
	"bytes"
	"fmt"
	"os"
	"runtime"
	"syscall"
	"time"
)

// usage is what the process took so far.
type usage struct {
	// CPUSeconds is the time of all threads, in the process and in the kernel.
	CPUSeconds float64 `json:"cpuSeconds"`
	// PeakBytes is the most memory that was resident, ResidentBytes what is.
	PeakBytes     int64 `json:"peakBytes"`
	ResidentBytes int64 `json:"residentBytes"`
	// LiveBytes is what the heap holds once garbage is collected.
	LiveBytes int64 `json:"liveBytes"`
}

// measure reads what the process took, the memory that stays after a while.
func measure(settle time.Duration) (usage, error) {
	var times syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &times); err != nil {
		return usage{}, err
	}
	u := usage{CPUSeconds: time.Duration(times.Utime.Nano() + times.Stime.Nano()).Seconds()}
	time.Sleep(settle)
	var err error
	if u.PeakBytes, err = statusBytes("VmHWM"); err != nil {
		return usage{}, err
	}
	if u.ResidentBytes, err = statusBytes("VmRSS"); err != nil {
		return usage{}, err
	}
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	u.LiveBytes = int64(memory.HeapAlloc) //nolint:gosec // it is far from the end of the range
	return u, nil
}

// statusBytes returns a field of the kernel's account of this process.
func statusBytes(field string) (int64, error) {
	status, err := os.ReadFile("/proc/self/status")
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(status) {
		if rest, ok := bytes.CutPrefix(line, []byte(field+":")); ok {
			var kilobytes int64
			_, err := fmt.Sscanf(string(rest), "%d kB", &kilobytes)
			return kilobytes << 10, err
		}
	}
	return 0, fmt.Errorf("the kernel does not tell %s", field)
}
