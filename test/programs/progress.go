package programs

import (
	"context"
	"fmt"
	"io"
	"time"
)

const (
	// announceAfter is the time after which a step is announced: a step that has nothing to
	// do ends sooner.
	announceAfter = 2 * time.Second
	// announceEvery is the time between two lines about the same step.
	announceEvery = 30 * time.Second
)

// step is one part of a build.
type step struct {
	name string
	// cost is the rough work of the step with an empty build cache, after the steps before it.
	// Only the ratios of costs matter.
	cost int
	run  func(context.Context) error
}

// runSteps runs steps in their order and reports them to progress: the number of each, the
// time since the start, and from the second step on an estimate of the time that is left.
func runSteps(ctx context.Context, progress io.Writer, steps []step) error {
	began := time.Now()
	var built pace
	for i, s := range steps {
		start := time.Now()
		rest := 0
		for _, later := range steps[i+1:] {
			rest += later.cost
		}
		announced, err := announced(ctx, s.run, func() {
			_, _ = fmt.Fprintf(progress, "[%d/%d] building %s, %s so far%s\n", i+1, len(steps), s.name,
				inSeconds(time.Since(began)), built.estimate(time.Since(start), s.cost, rest))
		})
		if err != nil {
			return err
		}
		if announced {
			built.cost, built.time = built.cost+s.cost, built.time+time.Since(start)
		}
	}
	if built.cost > 0 {
		_, _ = fmt.Fprintf(progress, "built in %s\n", inSeconds(time.Since(began)))
	}
	return nil
}

// pace is the time that steps took and their cost, without the steps that had nothing to do.
type pace struct {
	time time.Duration
	cost int
}

// estimate returns the time that is left as a phrase: of a step that has run for elapsed, and
// of the steps after it with their costs. It is empty before any step was built.
func (p pace) estimate(elapsed time.Duration, cost, rest int) string {
	if p.cost == 0 {
		return ""
	}
	expect := func(cost int) time.Duration { return p.time * time.Duration(cost) / time.Duration(p.cost) }
	return fmt.Sprintf(", about %s left", inSeconds(max(expect(cost)-elapsed, 0)+expect(rest)))
}

// announced runs work, and calls line while it runs: after announceAfter, and every
// announceEvery from then on. It reports whether line was called.
func announced(ctx context.Context, work func(context.Context) error, line func()) (bool, error) {
	ended := make(chan error, 1)
	go func() { ended <- work(ctx) }()
	timer := time.NewTimer(announceAfter)
	defer timer.Stop()
	called := false
	for {
		select {
		case err := <-ended:
			return called, err
		case <-timer.C:
			line()
			called = true
			timer.Reset(announceEvery)
		}
	}
}

func inSeconds(d time.Duration) time.Duration {
	return d.Round(time.Second)
}
