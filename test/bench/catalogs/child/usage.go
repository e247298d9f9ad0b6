package main

import (
	"os"
	"runtime"
	"time"

	"github.com/clusterextensions/operator-controller/test/bench/measure"
)

// usage is what the process took so far.
type usage struct {
	measure.Usage

	// LiveBytes is what the heap holds once garbage is collected.
	LiveBytes int64 `json:"liveBytes"`
}

// measureUsage reads what the process took, the memory that stays after a while.
func measureUsage(settle time.Duration) (usage, error) {
	worked, err := measure.Of(os.Getpid())
	if err != nil {
		return usage{}, err
	}
	time.Sleep(settle)
	u := usage{}
	if u.Usage, err = measure.Of(os.Getpid()); err != nil {
		return usage{}, err
	}
	u.CPUSeconds = worked.CPUSeconds
	runtime.GC()
	var memory runtime.MemStats
	runtime.ReadMemStats(&memory)
	u.LiveBytes = int64(memory.HeapAlloc) //nolint:gosec // it is far from the end of the range
	return u, nil
}
