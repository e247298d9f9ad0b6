package main

import (
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/spf13/cobra"
)

// errNotUp makes status usable as a condition in scripts.
var errNotUp = errors.New("no cluster is up")

func newStatusCommand(dir *string) *cobra.Command {
	return &cobra.Command{
		Use:   "status",
		Short: "Say whether the cluster is up, and what it consists of",
		Args:  cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			s, err := newSite(*dir)
			if err != nil {
				return err
			}
			current, running, err := s.running()
			if err != nil {
				return err
			}
			if !running || current.Kubeconfig == "" {
				return errNotUp
			}
			for _, name := range slices.Sorted(maps.Keys(current.Processes)) {
				fmt.Fprintf(cmd.OutOrStdout(), "%s\t%d\n", name, current.Processes[name])
			}
			printUsage(cmd, s, current)
			return nil
		},
	}
}
