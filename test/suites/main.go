// Command suites runs the long tests: suites with clusters of their own, several beside each
// other, because they wait more than they compute.
//
//	suites [-scale ci|full] [-jobs 4] [-within 60m] [-json FILE] [-flags FLAGS] [SUITE...]
//
// Without names it runs all suites. With -within, jobs that have not started by then do not run, and
// the command fails and names them: a slow machine still ends with a report. It prints the output of
// tests that fail, a line for each suite, the slowest tests, and the skipped ones with their reasons.
package main

import (
	"context"
	"errors"
	"flag"
	"fmt"
	"io"
	"os"
	"os/signal"
	"strings"
	"syscall"
	"time"
)

func main() {
	o := options{out: os.Stdout}
	flag.StringVar(&o.scale, "scale", scaleFull, "amount of work: ci for each change, full for a week")
	flag.IntVar(&o.jobs, "jobs", 4, "number of jobs beside each other")
	flag.StringVar(&o.events, "json", "", "file for the events of all tests, as go test -json prints them")
	flag.DurationVar(&o.within, "within", 0, "time after which no further job starts; 0 for any time")
	flag.Func("flags", "flags of all test binaries, separated by spaces", func(value string) error {
		o.flags = strings.Fields(value)
		return nil
	})
	flag.Parse()
	o.names = flag.Args()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := o.run(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// options are the command line.
type options struct {
	scale  string
	jobs   int
	events string
	names  []string
	flags  []string
	within time.Duration
	out    io.Writer
}

func (o *options) run(ctx context.Context) (err error) {
	chosen, err := choose(suites, o.scale, o.names)
	if err != nil {
		return err
	}
	began := time.Now()
	folder, err := os.MkdirTemp("", "operator-controller-suites-")
	if err != nil {
		return fmt.Errorf("creating a folder for the tests: %w", err)
	}
	defer func() { err = errors.Join(err, os.RemoveAll(folder)) }()
	jobs, err := compile(ctx, folder, chosen, o.scale, o.flags)
	if err != nil {
		return err
	}
	fmt.Fprintf(o.out, "%d jobs of %d suites, %d beside each other\n", len(jobs), len(chosen), o.jobs)
	r, err := newReport(o.out, o.events)
	if err != nil {
		return err
	}
	converter, err := findConverter(ctx)
	if err != nil {
		return err
	}
	starting := ctx
	if o.within > 0 {
		var cancel context.CancelFunc
		starting, cancel = context.WithDeadline(ctx, began.Add(o.within))
		defer cancel()
	}
	runAll(ctx, starting, jobs, newNeeds(o.out), o.jobs, r, func(ctx context.Context, j job) result {
		return j.run(ctx, converter, r)
	})
	return r.finish(time.Since(began))
}

func seconds(d time.Duration) time.Duration { return d.Round(time.Second) }
