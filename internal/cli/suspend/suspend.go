// Package suspend has the commands by which a person has an extension left as it is for a
// while.
package suspend

import (
	"fmt"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/cli"
)

// suspend is the command line of both.
type suspend struct {
	// value is that of spec.suspend; nil to leave it out.
	value any

	// done is what is said of the extension then.
	done    string
	cluster cli.Cluster
}

// NewCommand returns the command that suspends.
func NewCommand() *cobra.Command {
	o := suspend{value: true, done: "is suspended"}
	return o.bind(&cobra.Command{
		Use:   "suspend [clusterextension/]NAME",
		Short: "Leave what is installed as it is",
		Long: `Leave what is installed as it is: nothing is installed, upgraded or repaired until
kubectl extension resume. Status goes on telling what there is.

It sets spec.suspend. Where manifests come from Git, set it there: a tool that applies
them would take it back. It takes the right to patch the ClusterExtension.`,
		Example: `  kubectl extension suspend sample-operator`,
	})
}

// NewResumeCommand returns the command that ends it.
func NewResumeCommand() *cobra.Command {
	o := suspend{done: "is resumed"}
	return o.bind(&cobra.Command{
		Use:   "resume [clusterextension/]NAME",
		Short: "Go on with an extension that is suspended",
		Long: `Go on with an extension that is suspended: what was changed meanwhile is put back, and
what was to be installed is installed.

It takes spec.suspend away, which takes the right to patch the ClusterExtension.`,
		Example: `  kubectl extension resume sample-operator`,
	})
}

func (o *suspend) bind(command *cobra.Command) *cobra.Command {
	command.Args, command.RunE = cobra.RangeArgs(1, 2), o.run
	command.ValidArgsFunction = o.cluster.CompleteNames("", cobra.ShellCompDirectiveNoFileComp)
	o.cluster.Bind(command)
	return command
}

func (o *suspend) run(command *cobra.Command, args []string) error {
	name, extensions, err := o.cluster.NamedExtension(command, args)
	if err != nil {
		return err
	}
	if err := extensions.Patch(command.Context(), name, map[string]any{"spec": map[string]any{"suspend": o.value}}); err != nil {
		return err
	}
	_, err = fmt.Fprintf(command.OutOrStdout(), "clusterextension/%s %s\n", name, o.done)
	o.cluster.WarnAbsence(command.Context(), command)
	return err
}
