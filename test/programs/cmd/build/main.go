// Command build builds programs that tests and the demo run, and reports its progress. It
// imports the standard library only, so that it starts soon on a machine that has compiled
// nothing yet.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/clusterextensions/operator-controller/test/programs"
)

func main() {
	if len(os.Args) < 2 {
		fmt.Fprintln(os.Stderr, "usage: build TARGET...\ntargets:", strings.Join(programs.Targets(), " "))
		os.Exit(2)
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := programs.BuildAll(ctx, os.Stderr, os.Args[1:]...)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}
