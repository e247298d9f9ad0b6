// Package rollback has the command that takes an extension back to its revision before.
package rollback

import (
	"errors"
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

const help = `Take a ClusterExtension back to the revision before, as its release records have it.

First it says what that would do, as plan does. All checks are made in the other direction.
It is refused if anything is in the way, and whenever stored custom resources would not
survive, whatever spec.install.preflight lets pass. It is refused too if it cannot be known.

What it writes is the spec: the version, and SelfCertified as the policy, since no upgrade
leads back. The controller does the rest. The patch is printed; with --dry-run that is all,
for a repository from which the spec is applied.

Everything is done with your own rights. Besides those that plan needs, it takes the right
to read Secrets in the controller's namespace, and to patch the ClusterExtension.`

// goingBack is the command line.
type goingBack struct {
	cluster cli.Cluster
	images  cli.Images
	yes     bool
	dryRun  bool
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	o := goingBack{}
	command := &cobra.Command{
		Use:   "rollback [clusterextension/]NAME",
		Short: "Take an extension back to the version before",
		Long:  help,
		Example: `  kubectl extension rollback sample-operator
  kubectl extension rollback sample-operator --dry-run
  kubectl extension rollback sample-operator --yes`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return errors.New("give the name of a ClusterExtension")
			}
			_, err := cli.ExtensionName(args)
			return err
		},
		RunE: o.run,
	}
	command.ValidArgsFunction = o.cluster.CompleteNames("", cobra.ShellCompDirectiveNoFileComp)
	command.Flags().BoolVarP(&o.yes, "yes", "y", false, "Write it without a question.")
	command.Flags().BoolVar(&o.dryRun, "dry-run", false, "Print the patch of the spec, and write nothing.")
	o.images.Bind(command.Flags())
	o.cluster.BindInspect(command)
	return command
}

func (o *goingBack) run(command *cobra.Command, args []string) error {
	if o.yes && o.dryRun {
		return program.Misuse(command, errors.New("--dry-run writes nothing, so that there is nothing to say --yes to"))
	}
	name, err := cli.ExtensionName(args)
	if err != nil {
		return err
	}
	ctx := command.Context()
	cluster, err := o.cluster.Inspect(ctx)
	if err != nil {
		return err
	}
	found, err := cluster.Rollback(ctx, inspect.Request{Name: name, Bundles: o.images.Bundles(), Certificates: cli.ClusterIssuer})
	if err != nil {
		return err
	}
	made := preview.Make(found.Facts)
	if err := cli.PrintPreview(command.ErrOrStderr(), made); err != nil {
		return err
	}
	if n := len(made.Obstacles); n > 0 {
		return fmt.Errorf("it is not rolled back: %s in the way", cli.Counted(n, "obstacle"))
	}
	if len(found.Managers) > 0 {
		fmt.Fprintf(command.ErrOrStderr(), "\nwhat is changed was written by %s: if that is applied from a repository, it is put back, so change it there\n",
			cli.Printable(strings.Join(found.Managers, ", ")))
	}
	if !o.dryRun {
		if err := o.write(command, cluster, found, name); err != nil {
			return err
		}
	}
	_, err = fmt.Fprintln(command.OutOrStdout(), string(found.Patch))
	o.cluster.WarnAbsence(command.Context(), command)
	return err
}

func (o *goingBack) write(command *cobra.Command, cluster *inspect.Cluster, found inspect.Rollback, name string) error {
	if !o.yes {
		fmt.Fprintf(command.ErrOrStderr(), "\nwrite this to the spec of ClusterExtension %q? [y/N] ", name)
		agreed, err := cli.Agrees(command.Context(), command.InOrStdin())
		if err != nil {
			return err
		}
		if !agreed {
			return errors.New("nothing is written")
		}
	}
	return cluster.Write(command.Context(), found)
}
