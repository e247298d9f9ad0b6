package main

// usage is what a process took, as it reports itself.
type usage struct {
	CPUSeconds    float64 `json:"cpuSeconds"`
	PeakBytes     int64   `json:"peakBytes"`
	ResidentBytes int64   `json:"residentBytes"`
	LiveBytes     int64   `json:"liveBytes"`
}
