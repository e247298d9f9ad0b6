// Package crd has the commands about CustomResourceDefinitions.
package crd

import "github.com/spf13/cobra"

// NewCommand returns the commands about CustomResourceDefinitions.
func NewCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "crd",
		Short: "Check upgrades of CustomResourceDefinitions",
		Example: `  kubectl extension crd check ./v1.0.0 ./v1.1.0
  kubectl extension crd check --cluster ./v1.1.0`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newCheckCommand())
	return command
}
