package main

import "github.com/clusterextensions/operator-controller/test/bench/measure"

// usage is what a process took, as it reports itself.
type usage struct {
	measure.Usage

	LiveBytes int64 `json:"liveBytes"`
}
