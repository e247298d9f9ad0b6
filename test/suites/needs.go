package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/clusterextensions/operator-controller/test/programs"
)

// needs is the programs that are built while jobs run.
type needs struct {
	// built has the targets that are built, and gets one more with each value of done.
	built map[string]bool
	done  chan built
}

// built is a target that was built, or the error of its build.
type built struct {
	target string
	err    error
}

// build builds the programs of jobs one after the other, those of the first jobs first.
func build(ctx context.Context, jobs []job, progress io.Writer) *needs {
	var targets []string
	for _, j := range jobs {
		for _, target := range j.suite.needs {
			if !slices.Contains(targets, target) {
				targets = append(targets, target)
			}
		}
	}
	n := &needs{built: map[string]bool{}, done: make(chan built, len(targets))}
	go func() {
		for _, target := range targets {
			n.done <- built{target, programs.BuildAll(ctx, progress, target)}
		}
	}()
	return n
}

// next hands the first job whose programs are built to the queue, or waits for programs, and
// returns the jobs that are left. The error is the context's, or that of a build.
func (n *needs) next(ctx context.Context, jobs []job, queue chan<- job) ([]job, error) {
	at := slices.IndexFunc(jobs, func(j job) bool {
		return !slices.ContainsFunc(j.suite.needs, func(target string) bool { return !n.built[target] })
	})
	var to chan<- job // blocks for ever while no job is ready
	var first job
	if at >= 0 {
		to, first = queue, jobs[at]
	}
	select {
	case to <- first:
		return slices.Delete(jobs, at, at+1), nil
	case b := <-n.done:
		if b.err != nil {
			return jobs, fmt.Errorf("building %s: %w", b.target, b.err)
		}
		n.built[b.target] = true
		return jobs, nil
	case <-ctx.Done():
		return jobs, ctx.Err()
	}
}
