package catalog

import (
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/catalogcheck"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

// check is the command line of catalog check.
type check struct {
	output   *cli.Choice
	catalogs cli.Catalogs
}

func newCheckCommand() *cobra.Command {
	o := check{output: cli.NewOutput(cli.Text, cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "check CATALOG",
		Short: "List every problem of a catalog",
		Long: `List every problem of a catalog, one per line, with the file and the object that
it is in, sorted.

An error is what makes something of the catalog unusable, or what cannot be meant.
A warning is what works, but maybe not as you think, or not with other readers of
catalogs. A note is what is fine if it is meant.

` + cli.CatalogHelp,
		Example: `  kubectl extension catalog check ./catalog
  kubectl extension catalog check registry.example/catalog:latest -o json
  generate-catalog | kubectl extension catalog check -`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args[0]) },
	}
	o.output.Bind(command, "o", "Format of the list.")
	o.catalogs.Bind(command.Flags())
	return command
}

func (o check) run(command *cobra.Command, from string) error {
	reader, err := o.catalogs.Reader(command)
	if err != nil {
		return err
	}
	source, err := catalogsource.Parse(from)
	if err != nil {
		return program.Misuse(command, err)
	}
	var problems []catalogcheck.Problem
	err = reader.Files(command.Context(), source, func(files fs.FS) (err error) {
		problems, err = catalogcheck.Check(command.Context(), files)
		return err
	})
	if err != nil {
		return cli.CatalogError(err)
	}
	severity := func(p catalogcheck.Problem) catalogcheck.Severity { return p.Severity }
	return cli.PrintProblems(command, o.output, problems, severity)
}
