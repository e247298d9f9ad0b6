package catalog

import (
	"context"
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlecheck"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/catalogcheck"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

// check is the command line of catalog check.
type check struct {
	output   *cli.Choice
	bundles  bool
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

With --bundles, the images of bundles are pulled too, one after the other, and what is in
them is checked as "bundle check" does it, Helm charts with their default values, and held
against what the catalog says of it.

` + cli.CatalogHelp,
		Example: `  kubectl extension catalog check ./catalog
  kubectl extension catalog check ./catalog --bundles
  kubectl extension catalog check registry.example/catalog:latest -o json
  generate-catalog | kubectl extension catalog check -`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args[0]) },
	}
	o.output.Bind(command, "o", "Format of the list.")
	command.Flags().BoolVar(&o.bundles, "bundles", false, "Pull the images of bundles, and check what is in them too.")
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
	var look catalogcheck.Look
	if o.bundles {
		look = looking(o.catalogs.Bundles())
	}
	var problems []catalogcheck.Problem
	err = reader.Files(command.Context(), source, func(files fs.FS) (err error) {
		problems, err = catalogcheck.Check(command.Context(), files, look)
		return err
	})
	if err != nil {
		return cli.CatalogError(err)
	}
	severity := func(p catalogcheck.Problem) catalogcheck.Severity { return p.Severity }
	return cli.PrintProblems(command, o.output, problems, severity)
}

// looking pulls images, and checks what is in them as bundle check does.
func looking(bundles bundlesource.Reader) catalogcheck.Look {
	return func(ctx context.Context, ref string) (found catalogcheck.Content, err error) {
		err = bundles.ImageFiles(ctx, ref, func(files fs.FS) error {
			problems, err := bundlecheck.Check(files, bundles.Charts(ctx))
			if err != nil {
				return err
			}
			for _, problem := range problems {
				text := problem.Place(problem.Message)
				if problem.Severity == bundlecheck.Error {
					found.Errors = append(found.Errors, text)
				} else {
					found.Warnings = append(found.Warnings, text)
				}
			}
			content, err := bundle.Parse(files)
			if err != nil {
				return nil //nolint:nilerr // it is among the problems
			}
			found.Identity, _ = content.Identity() // some bundles tell none
			if content.Chart != nil {
				found.KubeVersion = content.Chart.KubeVersion
			}
			return nil
		})
		return found, err
	}
}
