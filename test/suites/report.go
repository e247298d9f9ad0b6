package main

import (
	"bufio"
	"cmp"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"sync"
	"time"
)

const (
	// slowestShown is the number of tests that the summary names.
	slowestShown = 20
	// maxLine bounds a line of events.
	maxLine = 16 << 20
)

var errFailed = errors.New("tests failed")

// event is a line of test2json.
type event struct {
	Action  string  `json:"Action"`
	Test    string  `json:"Test"`
	Output  string  `json:"Output"`
	Elapsed float64 `json:"Elapsed"`
}

// outcome is a test that has ended.
type outcome struct {
	test, action string
	elapsed      float64
	output       string
}

// result is a job that has ended.
type result struct {
	tests  []outcome
	output string // outside of tests
	stderr string
	took   time.Duration
	cpu    time.Duration // of the job and of the processes that it waited for
	err    error
}

// report collects results and prints them.
type report struct {
	mu      sync.Mutex
	out     io.Writer
	events  *os.File
	results map[string]result
	failed  []string
	leftOut []string
	broken  []error // why jobs did not run
}

func newReport(out io.Writer, events string) (*report, error) {
	r := &report{out: out, results: map[string]result{}}
	if events == "" {
		return r, nil
	}
	var err error
	if r.events, err = os.Create(events); err != nil {
		return nil, fmt.Errorf("creating the file of events: %w", err)
	}
	return r, nil
}

// read reads the events of a job until they end.
func (r *report) read(from io.Reader) result {
	var read result
	outputs := map[string]*strings.Builder{}
	lines := bufio.NewScanner(from)
	lines.Buffer(nil, maxLine)
	for lines.Scan() {
		r.keep(lines.Bytes())
		var e event
		if json.Unmarshal(lines.Bytes(), &e) != nil {
			continue
		}
		if outputs[e.Test] == nil {
			outputs[e.Test] = &strings.Builder{}
		}
		switch e.Action {
		case "output":
			_, _ = outputs[e.Test].WriteString(e.Output) // never fails
		case "pass", "fail", "skip":
			if e.Test != "" {
				read.tests = append(read.tests, outcome{e.Test, e.Action, e.Elapsed, outputs[e.Test].String()})
			}
		}
	}
	if lines.Err() != nil {
		_, _ = io.Copy(io.Discard, from) // lets the job end
	}
	if outputs[""] != nil {
		read.output = outputs[""].String()
	}
	// Output of a test that never ended, for example because of a panic.
	ended := map[string]bool{"": true}
	for _, o := range read.tests {
		ended[o.test] = true
	}
	for test, output := range outputs {
		if !ended[test] {
			read.tests = append(read.tests, outcome{test, "unfinished", 0, output.String()})
		}
	}
	return read
}

// keep writes a line to the file of events.
func (r *report) keep(line []byte) {
	if r.events == nil {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	_, _ = fmt.Fprintf(r.events, "%s\n", line)
}

// leaveOut records jobs that did not run because of err.
func (r *report) leaveOut(err error, jobs ...job) {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, j := range jobs {
		r.leftOut = append(r.leftOut, j.name)
	}
	if len(jobs) > 0 {
		r.broken = append(r.broken, err)
	}
}

// add prints a job that has ended.
func (r *report) add(j job, of result) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.results[j.name] = of
	state := "ok"
	if of.err != nil {
		state = "FAIL"
		r.failed = append(r.failed, j.name)
	}
	fmt.Fprintf(r.out, "%-4s %-18s %6s  %6s CPU  %s\n", state, j.name, seconds(of.took), seconds(of.cpu), of.counts())
	if of.err == nil {
		if j.suite.prints {
			fmt.Fprint(r.out, of.output)
		}
		return
	}
	for _, o := range of.tests {
		if o.action == "fail" || o.action == "unfinished" {
			fmt.Fprintf(r.out, "--- %s: %s\n%s\n", o.action, o.test, o.output)
		}
	}
	fmt.Fprintf(r.out, "%s%s%s: %v\n", of.output, of.stderr, j.name, of.err)
}

func (of result) counts() string {
	counts := map[string]int{}
	for _, o := range of.tests {
		counts[o.action]++
	}
	return fmt.Sprintf("%d passed, %d failed, %d skipped", counts["pass"], counts["fail"]+counts["unfinished"], counts["skip"])
}

// finish prints the summary. The error is errFailed unless all tests passed.
func (r *report) finish(took time.Duration) error {
	var all result
	var reasons []string
	for name, of := range r.results {
		if of.err == nil && len(of.tests) == 0 {
			reasons = append(reasons, fmt.Sprintf("%s: %s", name, reason(of.output+of.stderr)))
		}
		for _, o := range of.tests {
			all.tests = append(all.tests, o)
			if o.action == "skip" {
				reasons = append(reasons, fmt.Sprintf("%s %s: %s", name, o.test, reason(o.output)))
			}
		}
	}
	slices.SortFunc(all.tests, func(a, b outcome) int { return cmp.Compare(b.elapsed, a.elapsed) })
	fmt.Fprintln(r.out, "\nSlowest tests:")
	for _, o := range all.tests[:min(slowestShown, len(all.tests))] {
		fmt.Fprintf(r.out, "  %6.1f s  %s\n", o.elapsed, o.test)
	}
	if slices.Sort(reasons); len(reasons) > 0 {
		fmt.Fprintf(r.out, "\nSkipped:\n  %s\n", strings.Join(reasons, "\n  "))
	}
	if len(r.leftOut) > 0 {
		fmt.Fprintf(r.out, "\nLeft out: %s\n", strings.Join(r.leftOut, ", "))
	}
	fmt.Fprintf(r.out, "\n%s\nin %s\n", all.counts(), seconds(took))
	if r.events != nil {
		if err := r.events.Close(); err != nil {
			return fmt.Errorf("closing the file of events: %w", err)
		}
	}
	if slices.Sort(r.failed); len(r.failed) > 0 {
		r.broken = append(r.broken, fmt.Errorf("%w: %s", errFailed, strings.Join(r.failed, ", ")))
	}
	return errors.Join(r.broken...)
}

// reason returns the text that a skipped test gave.
func reason(output string) string {
	for line := range strings.Lines(output) {
		if line = strings.TrimSpace(line); line != "" && !strings.HasPrefix(line, "=== ") && !strings.HasPrefix(line, "--- ") {
			return line
		}
	}
	return "no reason"
}
