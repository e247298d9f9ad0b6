package main

import (
	"cmp"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// jobTimeout ends a job that hangs.
	jobTimeout = 60 * time.Minute
	// stopGrace is the time until a job that was interrupted is killed. Its cluster ends with it.
	stopGrace = 30 * time.Second
)

// job is one process with tests of a suite.
type job struct {
	suite   suite
	name    string
	folder  string
	program string
	args    []string
}

// compile compiles the test binary of each package once, and returns the jobs, the longest
// first.
func compile(ctx context.Context, folder string, chosen []suite, scale string, flags []string) ([]job, error) {
	root, err := testFolder(ctx)
	if err != nil {
		return nil, err
	}
	binaries := map[string]string{}
	var compiling errgroup.Group
	compiling.SetLimit(runtime.NumCPU())
	for _, s := range chosen {
		if binaries[s.pkg] != "" {
			continue
		}
		binary := filepath.Join(folder, strings.ReplaceAll(s.pkg, "/", "-")+".test")
		binaries[s.pkg] = binary
		compiling.Go(func() error {
			command := exec.CommandContext(ctx, "go", "test", "-c", "-vet=off", "-trimpath", "-ldflags=-s -w", "-o", binary, "./"+s.pkg) //nolint:gosec // our own arguments
			command.Dir, command.Env = root, append(os.Environ(), "CGO_ENABLED=0")
			if output, err := command.CombinedOutput(); err != nil {
				return fmt.Errorf("compiling the tests of %s: %w\n%s", s.pkg, err, output)
			}
			return nil
		})
	}
	if err := compiling.Wait(); err != nil {
		return nil, err
	}
	var jobs []job
	for _, s := range chosen {
		of, err := s.jobs(filepath.Join(root, s.pkg), binaries[s.pkg], s.args(scale, flags))
		if err != nil {
			return nil, err
		}
		jobs = append(jobs, of...)
	}
	slices.SortStableFunc(jobs, func(a, b job) int { return cmp.Compare(b.suite.expect, a.suite.expect) })
	return jobs, nil
}

// testFolder returns the folder of the module that this command is part of.
func testFolder(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "go", "list", "-f", "{{.Dir}}", "github.com/clusterextensions/operator-controller/test/suites").Output()
	if err != nil {
		return "", fmt.Errorf("locating the tests: %w", err)
	}
	return filepath.Dir(strings.TrimSpace(string(output))), nil
}

// findConverter returns the path of test2json. "go tool test2json" would set variables such as GOOS for the tests.
func findConverter(ctx context.Context) (string, error) {
	output, err := exec.CommandContext(ctx, "go", "tool", "-n", "test2json").Output()
	if err != nil {
		return "", fmt.Errorf("locating test2json: %w", err)
	}
	return strings.TrimSpace(string(output)), nil
}

// args returns the flags of the test binary.
func (s suite) args(scale string, more []string) []string {
	if scale == scaleFull {
		return slices.Concat(s.always, s.full, more)
	}
	return slices.Concat(s.always, s.ci, more)
}

// jobs returns one job for each shard of the suite that has tests. A flag -test.run among args
// chooses some tests of the suite.
func (s suite) jobs(folder, binary string, args []string) ([]job, error) {
	args, only := cutRun(args)
	if s.shards < 2 && only == "" {
		if s.run != "" {
			args = append(args, "-test.run="+s.run)
		}
		if s.skip != "" {
			args = append(args, "-test.skip="+s.skip)
		}
		return []job{{s, s.name, folder, binary, args}}, nil
	}
	tests, err := testsOf(folder)
	if err != nil {
		return nil, err
	}
	test, subtest, hasSubtest := strings.Cut(only, "/")
	shards, err := s.split(tests, test)
	if err != nil {
		return nil, err
	}
	var jobs []job
	for i, tests := range shards {
		pattern := "-test.run=^(" + strings.Join(tests, "|") + ")$"
		if hasSubtest {
			pattern += "/" + subtest
		}
		name := s.name
		if len(shards) > 1 {
			name = fmt.Sprintf("%s %d/%d", s.name, i+1, len(shards))
		}
		jobs = append(jobs, job{s, name, folder, binary, append(slices.Clone(args), pattern)})
	}
	return jobs, nil
}

// cutRun returns the flags without -test.run, and its pattern.
func cutRun(flags []string) (others []string, pattern string) {
	for _, flag := range flags {
		if value, ok := strings.CutPrefix(flag, "-test.run="); ok {
			pattern = value
		} else {
			others = append(others, flag)
		}
	}
	return others, pattern
}

var testFunction = regexp.MustCompile(`(?m)^func (Test\w+)\(\w+ \*testing\.T\)`)

// testsOf returns the names of the tests in a folder, in order. The sources are read, because a
// test binary that lists its tests starts its cluster first.
func testsOf(folder string) ([]string, error) {
	files, err := filepath.Glob(filepath.Join(folder, "*_test.go"))
	if err != nil {
		return nil, fmt.Errorf("listing tests: %w", err)
	}
	var tests []string
	for _, file := range files {
		source, err := os.ReadFile(file)
		if err != nil {
			return nil, fmt.Errorf("reading tests: %w", err)
		}
		for _, match := range testFunction.FindAllSubmatch(source, -1) {
			tests = append(tests, string(match[1]))
		}
	}
	return tests, nil
}

// split distributes the tests that match the pattern only among the shards: each shard gets about
// the same number of tests that are known to be slow, and about the same number of others.
func (s suite) split(tests []string, only string) ([][]string, error) {
	wanted, err := regexp.Compile(only)
	if err != nil {
		return nil, fmt.Errorf("pattern of -test.run: %w", err)
	}
	run, err := regexp.Compile(s.run)
	if err != nil {
		return nil, fmt.Errorf("pattern of the suite %s: %w", s.name, err)
	}
	skip, err := regexp.Compile(cmp.Or(s.skip, "^$"))
	if err != nil {
		return nil, fmt.Errorf("pattern of the suite %s: %w", s.name, err)
	}
	var chosen []string
	for _, test := range tests {
		if run.MatchString(test) && !skip.MatchString(test) && wanted.MatchString(test) {
			chosen = append(chosen, test)
		}
	}
	slices.SortStableFunc(chosen, func(a, b string) int { return cmp.Compare(slow[b], slow[a]) })
	shards := make([][]string, min(max(s.shards, 1), len(chosen)))
	load := make([]time.Duration, len(shards))
	for _, test := range chosen {
		least := slices.Index(load, slices.Min(load))
		shards[least] = append(shards[least], test)
		load[least] += cmp.Or(slow[test], usual)
	}
	return shards, nil
}

// usual is the time of a test that is not in slow.
const usual = 4 * time.Second

// runAll builds the programs that jobs need. Then it runs count jobs at a time. After the context named
// starting ends, it starts no further job. Jobs that run end with ctx.
func runAll(ctx, starting context.Context, jobs []job, n *needs, count int, r *report, run func(context.Context, job) result) {
	queue := make(chan job)
	var running sync.WaitGroup
	for range count {
		running.Go(func() {
			for j := range queue {
				r.add(j, run(ctx, j))
			}
		})
	}
	jobs = n.add(starting, jobs, r)
	for len(jobs) > 0 && starting.Err() == nil {
		select {
		case queue <- jobs[0]:
			jobs = jobs[1:]
		case <-starting.Done():
		}
	}
	r.leaveOut(starting.Err(), jobs...)
	close(queue)
	running.Wait()
}

// run runs the tests of the job below test2json, whose path is converter, and passes their events to r.
func (j job) run(ctx context.Context, converter string, r *report) result {
	began := time.Now()
	args := append([]string{"-t", "-p", "test/" + j.suite.pkg, j.program, "-test.v=test2json", "-test.timeout=" + jobTimeout.String()}, j.args...)
	command := exec.CommandContext(ctx, converter, args...) //nolint:gosec // compiled by this program
	command.Dir = j.folder
	command.SysProcAttr = &syscall.SysProcAttr{Setpgid: true}
	command.Cancel = func() error { return syscall.Kill(-command.Process.Pid, syscall.SIGTERM) }
	command.WaitDelay = stopGrace
	var stderr strings.Builder
	command.Stderr = &stderr
	events, err := command.StdoutPipe()
	if err == nil {
		err = command.Start()
	}
	if err != nil {
		return result{err: err}
	}
	read := r.read(events)
	read.err = command.Wait()
	read.took, read.stderr = time.Since(began), stderr.String()
	if state := command.ProcessState; state != nil {
		read.cpu = state.UserTime() + state.SystemTime()
	}
	return read
}
