// Package catalog has the commands for authors of catalogs.
package catalog

import (
	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/cli"
)

// NewCommand returns the commands for authors of catalogs. They need no cluster.
func NewCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "catalog",
		Short: "Check and serve file-based catalogs",
		Long: `Check and serve file-based catalogs, without a cluster.

` + cli.CatalogHelp + `

All files of a folder, at any depth, belong to the catalog, but those that an
.indexignore file excludes.`,
		Example: `  kubectl extension catalog check ./catalog
  kubectl extension catalog serve ./catalog`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newCheckCommand(), newServeCommand())
	return command
}
