package main

import "github.com/spf13/cobra"

// newCatalogCommand returns the commands for authors of catalogs. They need no
// cluster.
func newCatalogCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "catalog",
		Short: "Check and serve file-based catalogs",
		Long: `Check and serve file-based catalogs, without a cluster.

A catalog is a folder. All files in it, at any depth, belong to it, but those that
an .indexignore file excludes.`,
		Example: `  operator-controller catalog check ./catalog
  operator-controller catalog serve ./catalog`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newCatalogCheckCommand(), newCatalogServeCommand())
	return strict(command)
}
