// Package catalog has the commands about catalogs: for those who look for an operator, and for authors.
package catalog

import (
	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/cli"
)

// NewCommand returns them. Those for authors need no cluster.
func NewCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "catalog",
		Short: "Browse, check and serve catalogs",
		Long: `List, search and show the packages of the catalogs of a cluster, or of any other; check and
serve file-based catalogs, without a cluster.

` + cli.CatalogHelp + `

All files of a folder, at any depth, belong to the catalog, but those that an
.indexignore file excludes.`,
		Example: `  kubectl extension catalog search postgres
  kubectl extension catalog show sample-operator
  kubectl extension catalog check ./catalog
  kubectl extension catalog serve ./catalog`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return command.Help() },
	}
	command.AddCommand(newListCommand(), newSearchCommand(), newShowCommand(), newVersionsCommand(), newCheckCommand(), newServeCommand(), newRenderCommand(), newTemplateCommand())
	return command
}
