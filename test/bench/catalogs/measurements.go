package main

// measurement is the work of one process and what it may take of each resource;
// zero stands for no limit.
type measurement struct {
	name              string
	work              string
	catalogs, workers int
	bytes             int64 // of each catalog
	// after is the measurement of which it finds the indexes on disk, if any.
	after string

	cpuSeconds           float64 // per catalog
	peakMiB, residentMiB float64
}

const gigabyte = 1_000_000_000

// controllerWorkers is how many catalogs the controller reads at a time.
const controllerWorkers = 2

func measurements() []measurement {
	const cpuSeconds, peakMiB, residentMiB, tenCatalogsMiB = 2, 120, 60, 200
	const tenAtOnce = "index ten catalogs as the controller does"
	return []measurement{
		{name: "receive", work: "receive", catalogs: 1, workers: 1},
		{name: "decode with encoding/json", work: "decode", catalogs: 1, workers: 1},
		{
			name: "index one catalog", work: "index", catalogs: 1, workers: 1,
			cpuSeconds: cpuSeconds, peakMiB: peakMiB, residentMiB: residentMiB,
		},
		{
			name: "index the next digest too", work: "update", catalogs: 1, workers: 1,
			cpuSeconds: 2 * cpuSeconds, peakMiB: peakMiB, residentMiB: residentMiB,
		},
		{
			name: "index one catalog of a gigabyte", work: "index", catalogs: 1, workers: 1, bytes: gigabyte,
			peakMiB: peakMiB, residentMiB: residentMiB,
		},
		{
			name: "index ten catalogs", work: "index", catalogs: 10, workers: 1,
			cpuSeconds: cpuSeconds, peakMiB: tenCatalogsMiB, residentMiB: tenCatalogsMiB,
		},
		{
			name: tenAtOnce, work: "index", catalogs: 10, workers: controllerWorkers,
			cpuSeconds: cpuSeconds, peakMiB: tenCatalogsMiB, residentMiB: tenCatalogsMiB,
		},
		{
			name: "index the next digests of ten catalogs too", work: "update", catalogs: 10, workers: controllerWorkers,
			cpuSeconds: 2 * cpuSeconds, peakMiB: tenCatalogsMiB, residentMiB: tenCatalogsMiB,
		},
		{
			name: "restart with ten catalogs", work: "restart", catalogs: 10, workers: controllerWorkers,
			after:   tenAtOnce,
			peakMiB: tenCatalogsMiB, residentMiB: tenCatalogsMiB,
		},
	}
}
