package main

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/clusterextensions/operator-controller/test/programs"
)

// needs builds the programs of jobs: first the targets of most jobs, and then one target when no
// job is left whose programs are built, because builds beside tests make these slow.
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

// next returns the position of the first job whose programs are built, or a target to build.
func (n *needs) next(jobs []job) (at int, target string) {
	for _, target := range early {
		if !n.built[target] && slices.ContainsFunc(jobs, needing(target)) {
			return 0, target
		}
	}
	for at, j := range jobs {
		if n.missing(j) == "" {
			return at, ""
		}
	}
	return 0, n.missing(jobs[0])
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

func needing(target string) func(job) bool {
	return func(j job) bool { return slices.Contains(j.suite.needs, target) }
}
