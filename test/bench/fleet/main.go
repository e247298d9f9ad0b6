// Command fleet measures what many extensions cost: the controller runs as users
// run it, on a real cluster, beside a plain client that does the same writes once
// and no more, the floor. Each result is a line of JSON; the command fails when
// one is over its limit.
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

	"github.com/go-logr/logr"
	"sigs.k8s.io/controller-runtime/pkg/log"
)

// options is the command line.
type options struct {
	details string
	only    string
	size    int
}

func main() {
	log.SetLogger(logr.Discard()) // the library complains, with a stack, when nobody has said where it is to log
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	var o options
	flag.StringVar(&o.details, "details", "", "where to write CPU profiles, heap profiles and the requests of each phase; nowhere without it")
	flag.StringVar(&o.only, "only", "", "which `parts` to measure, separated by commas; all without it. There are "+strings.Join(partNames(), ", "))
	flag.IntVar(&o.size, "size", thousand, "how many extensions stand for the thousand, to try out a part with few of them")
	flag.Parse()
	err := run(ctx, os.Stdout, o)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

// run measures the parts that are chosen. Results over their limits do not end it.
func run(ctx context.Context, out io.Writer, o options) error {
	chosen, err := choose(o.only, partNames())
	if err != nil {
		return err
	}
	if o.size < smallestSize {
		return fmt.Errorf("-size must be at least %d, not %d", smallestSize, o.size)
	}
	var over []error
	for _, suite := range suites {
		b := newBench(out, o)
		exceeded, err := b.measure(ctx, partsOf(suite(b), chosen))
		over = append(over, exceeded)
		if err != nil {
			return errors.Join(append(over, err)...)
		}
	}
	return errors.Join(over...)
}

// say tells on the standard error what is going on.
func say(format string, values ...any) { fmt.Fprintf(os.Stderr, format+"\n", values...) }
