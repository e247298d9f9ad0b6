// Package plan has the command that says what an upgrade would do before it happens.
package plan

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

// formatDiff is the format of diff and patch.
const formatDiff = "diff"

// flagDelete is the flag for a plan of a deletion.
const flagDelete = "delete"

const help = `Say what the controller would do to the cluster if it could go on now: which objects it
would create, change, adopt and delete, which images change and which pods restart, which
rights the ServiceAccount lacks and which the operator gains, and what speaks against it.

With the name of a ClusterExtension, for that on a cluster; --version is for another one
than spec has. With -f and a file that has a ClusterExtension, for that, whether or not it
is on the cluster yet.

Nothing is written. Everything is asked with your own rights. Objects are read, and changes
are tried in a dry run of the API server, for which you need the rights to make them; what
you may not try is computed, and said. To know what the ServiceAccount lacks, you need the
right to impersonate it. What is installed is read from the release records, for which you
need to read Secrets in the controller's namespace; without that it is taken to be what the
catalogs have.

Values of Secrets are never shown, only whether they change.

-o diff prints a unified diff of all objects. It is the same each time as long as nothing
changes, so that it can be compared with an earlier one.

With --delete, say what kubectl delete would do instead, by the uninstall policy of the
extension: what goes and what stays, in which order, and how many custom resources there
are of each definition, with the names of the first ten. What is installed is read from the
release records too. The rights that the policy takes are asked for as the ServiceAccount,
if you may impersonate it; it need not be there, as its bindings are enough.

That something stands in the way is an error, and with --delete too that it is not known
whether an uninstall policy would refuse.`

// planning is the command line.
type planning struct {
	output  *cli.Choice
	cluster cli.Cluster
	images  cli.Images
	file    string
	version string
	maskEnv bool
	deletes bool
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	o := planning{output: cli.NewOutput(cli.Text, formatDiff, cli.JSON)}
	command := &cobra.Command{
		Use:   "plan [clusterextension/]NAME | -f FILE",
		Short: "Say what the next install or upgrade of an extension, or its deletion, would do",
		Long:  help,
		Example: `  kubectl extension plan sample-operator
  kubectl extension plan sample-operator --version 1.1.0 -o diff
  kubectl extension plan -f sample-operator.yaml -o json
  kubectl extension plan sample-operator --delete`,
		Args: o.checkArgs,
		RunE: o.run,
	}
	command.ValidArgsFunction = o.cluster.CompleteNames("", cobra.ShellCompDirectiveNoFileComp)
	flags := command.Flags()
	flags.StringVarP(&o.file, cli.FlagFilename, "f", "", "File with a ClusterExtension, which need not be on the cluster; - for standard input.")
	flags.StringVar(&o.version, "version", "", "Version or range of versions, in the place of the one in the spec.")
	flags.BoolVar(&o.maskEnv, "mask-env", false, "Mask environment variables too whose names have pass, token, secret or key in them.")
	flags.BoolVar(&o.deletes, flagDelete, false, "Say what a deletion would do.")
	cli.NoFiles(command, "version")
	o.output.Bind(command, "o", "Format of the plan.")
	o.images.Bind(flags)
	o.cluster.BindInspect(command)
	return command
}

func (o *planning) checkArgs(command *cobra.Command, args []string) error {
	if o.deletes {
		if err := o.checkDelete(command); err != nil {
			return err
		}
	}
	switch {
	case o.file != "" && len(args) > 0:
		return errors.New("--filename stands in the place of a name: leave one of them out")
	case o.file != "":
		return nil
	case len(args) == 0:
		return errors.New("give the name of a ClusterExtension, or a file that has one with --filename")
	}
	_, err := cli.ExtensionName(args)
	return err
}

// checkDelete refuses what is about another bundle than the installed one.
func (o *planning) checkDelete(command *cobra.Command) error {
	given := cli.Given(command, func(own *cobra.Command) { new(cli.Images).Bind(own.Flags()) })
	for _, flag := range []string{"version", "mask-env"} {
		if command.Flags().Changed(flag) {
			given = flag
		}
	}
	switch {
	case given != "":
		return fmt.Errorf("a deletion takes no other bundle, so that --%s says nothing: leave it out", given)
	case o.output.String() == formatDiff:
		return errors.New("a deletion has no diff: leave out --output diff")
	}
	return nil
}

func (o *planning) run(command *cobra.Command, args []string) error {
	request, err := o.request(command, args)
	if err != nil {
		return err
	}
	defer o.cluster.WarnAbsence(command.Context(), command)
	if o.deletes {
		return o.runDelete(command, request)
	}
	made, err := o.cluster.Preview(command.Context(), request, o.maskEnv)
	if err != nil {
		return err
	}
	if err := o.print(command.OutOrStdout(), made); err != nil {
		return err
	}
	return inTheWay(made.Obstacles)
}

func (o *planning) runDelete(command *cobra.Command, request inspect.Request) error {
	cluster, err := o.cluster.Inspect(command.Context())
	if err != nil {
		return err
	}
	facts, err := cluster.Uninstall(command.Context(), request)
	if err != nil {
		return err
	}
	made := preview.MakeUninstall(facts)
	if o.output.String() == cli.JSON {
		err = cli.Print(command.OutOrStdout(), o.output, made)
	} else {
		err = cli.PrintUninstall(command.OutOrStdout(), made)
	}
	if err != nil {
		return err
	}
	if made.Unchecked && len(made.Obstacles) == 0 {
		return errors.New("it is not known whether anything is in the way")
	}
	return inTheWay(made.Obstacles)
}

func inTheWay(obstacles []string) error {
	if n := len(obstacles); n > 0 {
		return fmt.Errorf("%s in the way", cli.Counted(n, "obstacle"))
	}
	return nil
}

func (o *planning) request(command *cobra.Command, args []string) (request inspect.Request, err error) {
	request.Version, request.Bundles, request.Certificates = o.version, o.images.Bundles(), cli.ClusterIssuer
	if o.file == "" {
		request.Name, err = cli.ExtensionName(args)
		return request, err
	}
	if request.File, err = cli.ReadExtension(command, o.file); err == nil {
		request.Name = request.File.Name
	}
	return request, err
}

func (o *planning) print(to io.Writer, made preview.Preview) error {
	switch o.output.String() {
	case cli.JSON:
		return cli.Print(to, o.output, made)
	case formatDiff:
		return cli.PrintDiff(to, made)
	}
	return cli.PrintPreview(to, made)
}
