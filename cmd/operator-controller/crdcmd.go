package main

import "github.com/spf13/cobra"

// newCRDCommand returns the commands about CustomResourceDefinitions.
func newCRDCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "crd",
		Short: "Check upgrades of CustomResourceDefinitions",
		Example: `  operator-controller crd check ./v1.0.0 ./v1.1.0
  operator-controller crd check --cluster ./v1.1.0`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newCRDCheckCommand())
	return command
}
