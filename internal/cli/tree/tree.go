// Package tree has the command that shows the objects of an extension.
package tree

import (
	"bytes"
	"cmp"
	"fmt"
	"io"
	"strings"
	"text/tabwriter"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/overview"
)

const help = `Show the objects of an extension, and how each is: Present or Missing; Ready,
Reconciling, NotReady or Stalled if its status counts; Done if it is a Job that has run and that
the cluster has deleted for its ttlSecondsAfterFinished; Terminating if it was deleted; Foreign if
it does not belong to the extension any more; Unknown if it may not be read, or does not say.

Everything is read with your own rights. Which objects there are is in the release records, for
which you need to read Secrets in the controller's namespace. Without that, objects are found by
their label and their owner, of the kinds that you may list. Objects that hooks of a chart have
left are among them. What may not be read is said to be
not known. Of Secrets, only metadata is read.`

// tree is the command line.
type tree struct {
	output  *cli.Choice
	cluster cli.Cluster
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	o := tree{output: cli.NewOutput(cli.Text, cli.JSON)}
	command := &cobra.Command{
		Use:     "tree [clusterextension/]NAME",
		Short:   "Show the objects of an extension, and how each is",
		Long:    help,
		Example: `  kubectl extension tree sample-operator`,
		Args:    cobra.RangeArgs(1, 2),
		RunE:    o.run,
	}
	command.ValidArgsFunction = o.cluster.CompleteNames("", cobra.ShellCompDirectiveNoFileComp)
	o.output.Bind(command, "o", "Format of the tree.")
	o.cluster.BindInspect(command)
	return command
}

func (o *tree) run(command *cobra.Command, args []string) error {
	name, err := cli.ExtensionName(args)
	if err != nil {
		return program.Misuse(command, err)
	}
	cluster, err := o.cluster.Inspect(command.Context())
	if err != nil {
		return err
	}
	found, err := cluster.Tree(command.Context(), name)
	if err != nil {
		return err
	}
	defer o.cluster.WarnAbsence(command.Context(), command)
	if o.output.String() == cli.JSON {
		return cli.Print(command.OutOrStdout(), o.output, found)
	}
	return printTree(command.OutOrStdout(), found)
}

func printTree(to io.Writer, found overview.Tree) error {
	const gap = 3
	var text bytes.Buffer
	table := tabwriter.NewWriter(&text, 0, 0, gap, ' ', 0)
	row := found.Extension
	fmt.Fprintf(table, "ClusterExtension %s %s\t%s\t%s\n", row.Name, cmp.Or(row.Installed, "(nothing installed)"), row.Health, row.Message)
	for i, shown := range found.Objects {
		isFirst := i == 0 || found.Objects[i-1].Namespace != shown.Namespace
		isLast := i == len(found.Objects)-1 || found.Objects[i+1].Namespace != shown.Namespace
		if isFirst {
			title := "in no namespace"
			if shown.Namespace != "" {
				title = "namespace " + shown.Namespace
			}
			fmt.Fprintf(table, "%s\t\t\n", title)
		}
		branch := "├─"
		if isLast {
			branch = "└─"
		}
		fmt.Fprintf(table, "%s %s %s\t%s\t%s\n", branch, shown.Kind, shown.Name, shown.Health, shown.Message)
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for line := range strings.Lines(text.String()) {
		if _, err := fmt.Fprintln(to, strings.TrimRight(line, " \n")); err != nil {
			return err
		}
	}
	if found.More > 0 {
		fmt.Fprintf(to, "and %d more\n", found.More)
	}
	for _, line := range found.Unknown {
		if _, err := fmt.Fprintln(to, "not known: "+line); err != nil {
			return err
		}
	}
	return nil
}
