// Package explain has the command that says why it is this bundle and no other.
package explain

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
)

// explain is the command line of explain.
type explain struct {
	output  *cli.Choice
	offline offline
	cluster cli.Cluster
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	o := explain{output: cli.NewOutput(cli.Text, cli.JSON, cli.YAML)}
	command := &cobra.Command{
		Use:   "explain [[clusterextension/]NAME]",
		Short: "Say which bundle of a package is chosen, and why none of the others",
		Long: `Say which bundle of a package is chosen, and by which rule every other one is left
out.

With the name of a ClusterExtension, for that on a cluster, with your own rights: you
need to read it, ClusterCatalogs and their content, which comes through the proxy of
the API server if a Service has it. What else you may not read is said to be not known.

With --catalog and --package, without a cluster. Without facts about a cluster, what
bundles require is not held against them, but shown. Once any fact is given, by
--kubernetes, --openshift, --serves or --extension, the cluster is taken to be exactly
that: nothing else is served or installed.

` + cli.CatalogHelp + `

That no bundle is chosen is an error.`,
		Example: `  kubectl extension explain sample-operator
  kubectl extension explain --catalog ./catalog --package sample-operator
  kubectl extension explain --catalog ./catalog --package sample-operator --installed sample-operator.v1.0.0 --version 1.x
  kubectl extension explain --catalog https://catalogs.example/catalogs/community --package sample-operator \
    --kubernetes 1.36.0 --serves cert-manager.io/v1/Certificate --extension base-operator=1.2.0 -o json`,
		Args: cobra.MaximumNArgs(2),
		RunE: o.run,
	}
	command.ValidArgsFunction = o.cluster.CompleteNames("", cobra.ShellCompDirectiveNoFileComp)
	o.output.Bind(command, "o", "Format of the answer.")
	o.offline.bind(command)
	o.cluster.BindInspect(command)
	return command
}

func (o *explain) run(command *cobra.Command, args []string) error {
	answer, err := o.explain(command, args)
	if usage, ok := errors.AsType[*program.UsageError](err); ok {
		return program.Misuse(command, usage.Err)
	}
	if err != nil {
		return err
	}
	return o.print(command, answer)
}

func (o *explain) explain(command *cobra.Command, args []string) (*answer, error) {
	if len(args) == 0 {
		if err := o.cluster.CheckUnused(command); err != nil {
			return nil, &program.UsageError{Err: err}
		}
		return o.offline.explain(command)
	}
	name, err := cli.ExtensionName(args)
	if err != nil {
		return nil, &program.UsageError{Err: err}
	}
	if given := cli.Given(command, new(offline).bind); given != "" {
		return nil, &program.UsageError{Err: fmt.Errorf("the cluster says what --%s is for an extension: leave it out", given)}
	}
	cluster, err := o.cluster.Inspect(command.Context())
	if err != nil {
		return nil, err
	}
	found, err := cluster.Explain(command.Context(), name)
	if err != nil {
		return nil, err
	}
	return answerOf(found), nil
}

// print prints the answer. It returns an error too if no bundle is chosen.
func (o *explain) print(command *cobra.Command, answer *answer) error {
	write := answer.printText
	if o.output.String() != cli.Text {
		write = func(to io.Writer) error { return cli.Print(to, o.output, answer) }
	}
	if err := write(command.OutOrStdout()); err != nil {
		return err
	}
	if answer.Resolved == nil && answer.Image == "" {
		return errors.New("no bundle is chosen")
	}
	return nil
}
