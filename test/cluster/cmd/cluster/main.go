// Command cluster starts and stops the Kubernetes control plane that
// tests and demos use: package test/cluster for people at a terminal and for
// the Makefile.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	err := newCommand().ExecuteContext(ctx)
	stop()
	if err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1)
	}
}

func newCommand() *cobra.Command {
	root := &cobra.Command{
		Use:           "cluster",
		Short:         "Run a Kubernetes control plane from Go modules",
		SilenceErrors: true,
		SilenceUsage:  true,
	}
	dir := root.PersistentFlags().String("dir", "", "directory of the running cluster (default: in the cache of the user)")
	root.AddCommand(newUpCommand(dir), newDownCommand(dir), newStatusCommand(dir), newSuperviseCommand(dir))
	return root
}
