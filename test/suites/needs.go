package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/clusterextensions/operator-controller/test/programs"
)

// needs builds the programs of jobs. It builds one target when no job is left whose programs
// are built: builds beside tests would make these slow.
type needs struct {
	progress io.Writer
	build    func(ctx context.Context, progress io.Writer, targets ...string) error
	built    map[string]bool
}

// early are the targets of most jobs.
var early = []string{"cluster", "own", "race"}

func newNeeds(progress io.Writer) *needs {
	return &needs{progress: progress, build: programs.BuildAll, built: map[string]bool{}}
}

// provide builds early targets that jobs need.
func (n *needs) provide(ctx context.Context, jobs []job) error {
	for _, target := range early {
		if !slices.ContainsFunc(jobs, func(j job) bool { return slices.Contains(j.suite.needs, target) }) {
			continue
		}
		if err := n.add(ctx, target); err != nil {
			return err
		}
	}
	return nil
}

// next hands the first job whose programs are built to the queue, or builds programs for the
// first job if there is none, and returns the jobs that are left. The error is the context's,
// or that of a build.
func (n *needs) next(ctx context.Context, jobs []job, queue chan<- job) ([]job, error) {
	for at, j := range jobs {
		if n.missing(j) != "" {
			continue
		}
		select {
		case queue <- j:
			return slices.Delete(jobs, at, at+1), nil
		case <-ctx.Done():
			return jobs, ctx.Err()
		}
	}
	return jobs, n.add(ctx, n.missing(jobs[0]))
}

// missing returns a target that the job needs and that is not built; empty for none.
func (n *needs) missing(j job) string {
	for _, target := range j.suite.needs {
		if !n.built[target] {
			return target
		}
	}
	return ""
}

func (n *needs) add(ctx context.Context, target string) error {
	if err := n.build(ctx, n.progress, target); err != nil {
		return fmt.Errorf("building %s: %w", target, err)
	}
	n.built[target] = true
	return nil
}
