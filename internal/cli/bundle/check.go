package bundle

import (
	"io/fs"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/bundlecheck"
	"github.com/clusterextensions/operator-controller/internal/cli"
)

// check is the command line of bundle check.
type check struct {
	output *cli.Choice
	images cli.Images
}

func newCheckCommand() *cobra.Command {
	o := check{output: cli.NewOutput(cli.Text, cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "check DIR|IMAGE",
		Short: "List every problem of a bundle",
		Long: `List every problem of a bundle, one per line, with the file and the field that it
is in, sorted.

An error is what keeps the bundle from being installed. A warning is what works, but
maybe not as you think, or only where something else is. The bundle is also rendered
in every install mode that it supports: some errors show only there.

What is no folder here, and no packaged chart, is the reference of an image, which is
pulled. Registries, mirrors and credentials are those of the system.`,
		Example: `  kubectl extension bundle check ./bundle
  kubectl extension bundle check registry.example/my-operator:v1.0.0 -o json`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args[0]) },
	}
	o.output.Bind(command, "o", "Format of the list.")
	o.images.Bind(command.Flags())
	return command
}

func (o *check) run(command *cobra.Command, from string) error {
	var problems []bundlecheck.Problem
	bundles := o.images.Bundles()
	err := bundles.Files(command.Context(), from, func(files fs.FS) (err error) {
		problems, err = bundlecheck.Check(files, bundles.Charts(command.Context()))
		return err
	})
	if err != nil {
		return cli.BundleError(err)
	}
	severity := func(p bundlecheck.Problem) bundlecheck.Severity { return p.Severity }
	return cli.PrintProblems(command, o.output, problems, severity)
}
