// Command cluster builds, starts and stops the Kubernetes control plane that
// tests and demos use: package test/cluster for people at a terminal and for
// the Makefile.
package main

import (
	"context"
	"fmt"
	"os"
	"os/signal"
	"path/filepath"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/test/cluster"
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
	root.AddCommand(newBuildCommand(), newUpCommand(dir), newDownCommand(dir), newStatusCommand(dir), newSuperviseCommand(dir))
	return root
}

func newBuildCommand() *cobra.Command {
	var monitoring, gitops, classic bool
	command := &cobra.Command{
		Use:   "build",
		Short: "Build the programs of the cluster into the cache",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			binaries, err := cluster.Build(cmd.Context(), cmd.ErrOrStderr())
			if err != nil {
				return err
			}
			cmd.PrintErrf("programs are in %s\n", filepath.Dir(binaries.KWOK))
			if monitoring {
				if _, err = cluster.BuildMonitoring(cmd.Context(), cmd.ErrOrStderr()); err != nil {
					return err
				}
			}
			if gitops {
				if _, err = cluster.BuildGitOps(cmd.Context(), cmd.ErrOrStderr()); err != nil {
					return err
				}
			}
			if classic {
				_, err = cluster.BuildClassic(cmd.Context(), cmd.ErrOrStderr())
			}
			return err
		},
	}
	command.Flags().BoolVar(&monitoring, "monitoring", false, "build those that watch one, too: Prometheus and kube-state-metrics")
	command.Flags().BoolVar(&gitops, "gitops", false, "build the controllers of Flux and the engine of Argo CD, too")
	command.Flags().BoolVar(&classic, "classic", false, "build classic OLM, too")
	return command
}
