// Package measure is what the benchmarks of whole processes share: it reads what
// a process took, and prints results.
package measure

import (
	"encoding/json"
	"fmt"
	"io"
)

// Report prints each result as a line of JSON.
type Report struct {
	lines      *json.Encoder
	extensions int
}

// NewReport prints to out.
func NewReport(out io.Writer) *Report { return &Report{lines: json.NewEncoder(out)} }

// For prints to the same output, and each line has the number of extensions that it is
// about. A benchmark that is made with several numbers can so be drawn over them.
func (r *Report) For(extensions int) *Report { return &Report{lines: r.lines, extensions: extensions} }

// result is a line of the output.
type result struct {
	Benchmark string `json:"benchmark"`
	// Extensions is how many there were. It is absent where that is in the name of the
	// benchmark.
	Extensions int    `json:"extensions,omitempty"`
	Metric     string `json:"metric"`
	// Value is in the unit in the name of the metric.
	Value float64 `json:"value"`
	// Limit is the largest value that will do. Without it, any will.
	Limit *float64 `json:"limit,omitempty"`
}

// Tell prints a result that has no limit.
func (r *Report) Tell(benchmark, metric string, value float64) error {
	return r.lines.Encode(result{Benchmark: benchmark, Extensions: r.extensions, Metric: metric, Value: value})
}

// Check prints a result. The error says that it is over the limit.
func (r *Report) Check(benchmark, metric string, value, limit float64) error {
	line := result{Benchmark: benchmark, Extensions: r.extensions, Metric: metric, Value: value, Limit: &limit}
	if err := r.lines.Encode(line); err != nil {
		return err
	}
	if value > limit {
		return fmt.Errorf("%s: %s is %.2f, the limit is %.2f", benchmark, metric, value, limit)
	}
	return nil
}
