package main

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"
)

// explainCommand is the command line of explain.
type explainCommand struct {
	output  string
	offline offlineChoice
	cluster clusterChoice
}

func newExplainCommand() *cobra.Command {
	o := explainCommand{output: "text"}
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

` + catalogHelp + `

Exit codes: 0 a bundle is chosen, 1 none is, or a catalog cannot be read, 2 wrong
usage.`,
		Example: `  operator-controller explain sample-operator
  operator-controller explain --catalog ./catalog --package sample-operator
  operator-controller explain --catalog ./catalog --package sample-operator --installed sample-operator.v1.0.0 --version 1.x
  operator-controller explain --catalog https://catalogs.example/catalogs/community --package sample-operator \
    --kubernetes 1.36.0 --serves cert-manager.io/v1/Certificate --extension base-operator=1.2.0 -o json`,
		Args: cobra.MaximumNArgs(2),
		RunE: o.run,
	}
	command.Flags().StringVarP(&o.output, "output", "o", o.output, "Format of the answer: text or json.")
	o.offline.bind(command.Flags())
	o.cluster.bind(command.Flags())
	return command
}

func (o *explainCommand) run(command *cobra.Command, args []string) error {
	if o.output != "text" && o.output != "json" {
		return misuse(command, fmt.Errorf("unknown output %q: it is text or json", o.output))
	}
	answer, err := o.explain(command, args)
	if usage, ok := errors.AsType[*usageError](err); ok {
		return misuse(command, usage.err)
	}
	if err != nil {
		return err
	}
	return o.print(command.OutOrStdout(), answer)
}

func (o *explainCommand) explain(command *cobra.Command, args []string) (*explained, error) {
	if len(args) == 0 {
		return o.offline.explain(command)
	}
	name, err := extensionName(args)
	if err != nil {
		return nil, &usageError{err: err}
	}
	if given := o.offline.given(command.Flags()); given != "" {
		return nil, &usageError{err: fmt.Errorf("the cluster says what --%s is for an extension: leave it out", given)}
	}
	return o.cluster.explain(command.Context(), name)
}

// print prints the answer. It returns an error too if no bundle is chosen.
func (o *explainCommand) print(to io.Writer, answer *explained) error {
	write := answer.printText
	if o.output == "json" {
		write = answer.printJSON
	}
	if err := write(to); err != nil {
		return err
	}
	if answer.Resolved == nil {
		return errors.New("no bundle is chosen")
	}
	return nil
}
