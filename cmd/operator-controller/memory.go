package main

import (
	"math"
	"os"
	"runtime/debug"

	"github.com/KimMachineGun/automemlimit/memlimit"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterextensions/operator-controller/internal/helmchart"
)

const (
	// gcPercent makes the collector run more than twice as often as by default. What the
	// process has of an extension is small and stays; most of its memory would be
	// garbage of passes that are over. It idles most of the time, and CPU is what it can
	// spare.
	gcPercent = 40

	// memoryShare is how much of what its container may have the process takes before
	// the collector works against that whatever it costs. The rest is for what is not on
	// the heap: pages of the binary, and of the files that are read.
	memoryShare = 0.85

	// leastShare is what the process has at least where there is little room for the process
	// beside it that renders a chart.
	leastShare = 0.5
)

// limitMemory has the collector keep the process within the limit of its container. The
// environment variables of Go (GOGC, GOMEMLIMIT) have their meaning where they are set.
func limitMemory() {
	if _, set := os.LookupEnv("GOGC"); !set {
		debug.SetGCPercent(gcPercent)
	}
	limit, err := memlimit.Set(memlimit.WithRatio(1), memlimit.WithProvider(func() (uint64, error) {
		container, err := memlimit.FromCgroup()
		return ownMemory(container), err
	}))
	switch {
	case err != nil:
		ctrl.Log.Info("the memory limit of the container is not known, and nothing is kept within it", "reason", err.Error())
	case limit < math.MaxInt64:
		ctrl.Log.Info("memory is limited", "bytes", limit)
	}
}

// ownMemory is how much of what its container may have, in bytes, is for the process itself. A
// chart is rendered by a process of its own, in the same container, and the kernel may end both
// when they take too much together.
func ownMemory(container uint64) uint64 {
	own := float64(container) * memoryShare
	return uint64(max(own-helmchart.MaxMemory, float64(container)*leastShare))
}
