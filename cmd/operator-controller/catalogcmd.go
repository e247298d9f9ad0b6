package main

import "github.com/spf13/cobra"

// catalogHelp is what help texts say about where a catalog may be.
const catalogHelp = `A catalog is a folder, a file, - for standard input, the URL below which it is
served, or else an image, which is pulled. Registries, mirrors and credentials are
those of the system.`

// newCatalogCommand returns the commands for authors of catalogs. They need no
// cluster.
func newCatalogCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "catalog",
		Short: "Check and serve file-based catalogs",
		Long: `Check and serve file-based catalogs, without a cluster.

` + catalogHelp + `

All files of a folder, at any depth, belong to the catalog, but those that an
.indexignore file excludes.`,
		Example: `  operator-controller catalog check ./catalog
  operator-controller catalog serve ./catalog`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newCatalogCheckCommand(), newCatalogServeCommand())
	return command
}
