// Package get has the command that lists extensions, and where each stands.
package get

import (
	"cmp"
	"errors"
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/overview"
)

const help = `List extensions, each in a line: the version that is installed, the upgrade that there is
and what it waits for, and where the extension stands, with why.

PENDING says what an upgrade waits for: for somebody's approval, and then AVAILABLE is its
version, or for the operator that is installed, and then the version is not known. Others go
by themselves. What the range of versions in a spec leaves out is no upgrade: kubectl
extension explain tells of it.

HEALTH is Ready, Reconciling, Suspended, Terminating, NotReady, Stalled if a person has to
act, Waiting for a controller to look at the spec, or Unknown; with --watch, Deleted once it
is gone.

With --watch, each line that changes is printed again, until the command is interrupted.

If you may list Leases, or get those of the namespace olmv1-system, the command warns when
no controller is running: the status is out of date then.

It takes the right to list ClusterExtensions, or with a name to get it; with --watch, to
watch them.`

// get is the command line.
type get struct {
	output  *cli.Choice
	cluster cli.Cluster
	watch   bool
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	o := get{output: cli.NewOutput(cli.Text, cli.JSON)}
	command := &cobra.Command{
		Use:   "get [[clusterextension/]NAME]",
		Short: "List extensions, and where each stands",
		Long:  help,
		Example: `  kubectl extension get
  kubectl extension get sample-operator --watch
  kubectl extension get -o json`,
		Args: cobra.MaximumNArgs(2),
		RunE: o.run,
	}
	command.ValidArgsFunction = o.cluster.CompleteNames("", cobra.ShellCompDirectiveNoFileComp)
	command.Flags().BoolVarP(&o.watch, "watch", "w", false, "Print each line that changes, until interrupted.")
	o.output.Bind(command, "o", "Format of the list.")
	o.cluster.Bind(command)
	return command
}

func (o *get) run(command *cobra.Command, args []string) error {
	asJSON := o.output.String() == cli.JSON
	if asJSON && o.watch {
		return program.Misuse(command, errors.New("--watch prints lines for people: leave out --output json"))
	}
	var name string
	var extensions *cli.Extensions
	var err error
	if len(args) == 0 {
		extensions, err = o.cluster.AllExtensions(command)
	} else {
		name, extensions, err = o.cluster.NamedExtension(command, args)
	}
	if err != nil {
		return err
	}
	found, _, err := extensions.List(command.Context(), name)
	if err != nil {
		return err
	}
	table := overview.Make(found)
	if asJSON {
		err = cli.Print(command.OutOrStdout(), o.output, table)
		o.cluster.WarnAbsence(command.Context(), command)
		return err
	}
	widths, err := printTable(command, table)
	if err != nil {
		return err
	}
	o.cluster.WarnAbsence(command.Context(), command)
	if !o.watch {
		return nil
	}
	lines := changes{printed: map[string]string{}, to: command.OutOrStdout(), widths: widths}
	for _, row := range table.Extensions {
		lines.printed[row.Name] = widths.line(cells(row))
	}
	return extensions.Follow(command.Context(), name, lines.next)
}

// printTable prints a list, and gives the widths of its columns.
func printTable(command *cobra.Command, table overview.Table) (widths, error) {
	if len(table.Extensions) == 0 {
		fmt.Fprintln(command.ErrOrStderr(), "there are no ClusterExtensions")
	}
	rows := [][]string{{"NAME", "INSTALLED", "AVAILABLE", "PENDING", "HEALTH", "MESSAGE"}}
	for _, row := range table.Extensions {
		rows = append(rows, cells(row))
	}
	columns := widthsOf(rows)
	if len(table.Extensions) > 0 {
		for _, row := range rows {
			if _, err := fmt.Fprintln(command.OutOrStdout(), columns.line(row)); err != nil {
				return nil, err
			}
		}
	}
	if table.More > 0 {
		fmt.Fprintf(command.ErrOrStderr(), "and %d more\n", table.More)
	}
	return columns, nil
}

// maxMessage is how much of a message a table has, in bytes.
const maxMessage = 160

func cells(row overview.Row) []string {
	pending := row.Pending
	if row.Since != nil {
		pending += " since " + row.Since.Format("2006-01-02")
	}
	return []string{row.Name, cmp.Or(row.Installed, "-"), cmp.Or(row.Available, "-"), cmp.Or(pending, "-"), string(row.Health), excerpt.Cut(row.Message, maxMessage)}
}
