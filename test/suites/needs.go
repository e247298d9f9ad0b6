package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/clusterextensions/operator-controller/test/programs"
)

// needs builds all programs before the first job starts, because builds slow down tests that run at
// the same time.
type needs struct {
	progress io.Writer
	build    func(ctx context.Context, progress io.Writer, targets ...string) error
}

func newNeeds(progress io.Writer) *needs {
	return &needs{progress: progress, build: programs.BuildAll}
}

// add builds what the jobs need, and returns the jobs whose programs are built. The report names
// the others: a target that cannot be built leaves out only the jobs that need it.
func (n *needs) add(ctx context.Context, jobs []job, r *report) []job {
	for _, target := range targetsOf(jobs) {
		if ctx.Err() != nil {
			break
		}
		if err := n.build(ctx, n.progress, target); err != nil && ctx.Err() == nil {
			r.leaveOut(fmt.Errorf("building %s: %w", target, err), those(jobs, needing(target))...)
			jobs = slices.DeleteFunc(jobs, needing(target))
		}
	}
	return jobs
}

// targetsOf returns what the jobs need, the targets of the first job first.
func targetsOf(jobs []job) []string {
	var targets []string
	for _, j := range jobs {
		for _, target := range j.suite.needs {
			if !slices.Contains(targets, target) {
				targets = append(targets, target)
			}
		}
	}
	return targets
}

func needing(target string) func(job) bool {
	return func(j job) bool { return slices.Contains(j.suite.needs, target) }
}

func those(jobs []job, are func(job) bool) []job {
	return slices.DeleteFunc(slices.Clone(jobs), func(j job) bool { return !are(j) })
}
