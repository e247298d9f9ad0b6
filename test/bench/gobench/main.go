// Command gobench turns the output of Go benchmarks on its standard input into
// one line of JSON per result. Lines that are no results, such as those of a
// failure, go to the standard error. It fails when a package failed.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"
)

func main() {
	if err := convert(os.Stdin, os.Stdout, os.Stderr); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// result is one line of a benchmark.
type result struct {
	Package   string `json:"package"`
	Benchmark string `json:"benchmark"`
	// Runs is how many times the code ran for one figure.
	Runs int64 `json:"runs"`
	// Values are the figures by unit, such as "ns/op".
	Values map[string]float64 `json:"values"`
}

var errFailed = errors.New("a package failed")

func convert(in io.Reader, out, rest io.Writer) error {
	var failed error
	var pkg string
	encoder := json.NewEncoder(out)
	lines := bufio.NewScanner(in)
	for lines.Scan() {
		line := lines.Text()
		if name, ok := strings.CutPrefix(line, "pkg: "); ok {
			pkg = name
			continue
		}
		if r, ok := parse(line); ok {
			r.Package = pkg
			if err := encoder.Encode(r); err != nil {
				return err
			}
			continue
		}
		if strings.HasPrefix(line, "FAIL") {
			failed = errFailed
		}
		if !boilerplate(line) {
			fmt.Fprintln(rest, line)
		}
	}
	return errors.Join(lines.Err(), failed)
}

// boilerplate reports whether a line says no more than that all is well.
func boilerplate(line string) bool {
	for _, prefix := range []string{"goos: ", "goarch: ", "cpu: ", "PASS", "ok  ", "?   "} {
		if strings.HasPrefix(line, prefix) {
			return true
		}
	}
	return false
}

// parse reads a line such as "BenchmarkX-2  100  12.5 ns/op  3 allocs/op".
func parse(line string) (result, bool) {
	const nameAndRuns = 2
	fields := strings.Fields(line)
	if len(fields) <= nameAndRuns || len(fields)%2 != 0 || !strings.HasPrefix(line, "Benchmark") {
		return result{}, false
	}
	runs, err := strconv.ParseInt(fields[1], 10, 64)
	if err != nil {
		return result{}, false
	}
	r := result{Benchmark: strings.TrimPrefix(fields[0], "Benchmark"), Runs: runs, Values: map[string]float64{}}
	for i := nameAndRuns; i < len(fields); i += 2 {
		value, err := strconv.ParseFloat(fields[i], 64)
		if err != nil {
			return result{}, false
		}
		r.Values[fields[i+1]] = value
	}
	return r, true
}
