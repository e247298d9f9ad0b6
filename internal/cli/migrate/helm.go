package migrate

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/migration/fromhelm"
	"github.com/clusterextensions/operator-controller/internal/migration/helmstore"
)

const helmHelp = `Make releases that Helm has installed ClusterExtensions, in place. Nothing of what is installed
is written, and no pod restarts.

The extension gets the name, the namespace, the chart version and the values of the release. Its
chart is the image that --image names, or the one that a ClusterCatalog has; kubectl extension
bundle push pushes one.

Each release is checked first, and with --dry-run that is all. Then:

  1  a pending revision is added to Helm's records, so that Helm refuses to upgrade the release
  2  the last revision of Helm is recorded as installed, in the namespace of the controller
  3  the extension is created, with a ServiceAccount that has the permissions that it takes
  4  the extension becomes ready

Whatever stops it, the same command goes on from there. Until migrate helm finish, Helm keeps its
records, and migrate helm rollback gives the release back to Helm.

With --all, releases that cannot be moved are left out, which is an error.

The command uses your own permissions.`

// helm is the command line of migrate helm.
type helm struct {
	moving

	namespace string
	all       bool
	dryRun    bool
	options   fromhelm.Options
}

func newHelmCommand() *cobra.Command {
	o := helm{}
	command := &cobra.Command{
		Use:   "helm RELEASE -n NAMESPACE | --all",
		Short: "Make releases of Helm extensions, in place",
		Long:  helmHelp,
		Example: `  kubectl extension migrate helm grafana -n monitoring --image registry.example.com/charts/grafana:10.1.2 --dry-run
  kubectl extension migrate helm --all --repository registry.example.com/charts
  kubectl extension migrate helm rollback grafana -n monitoring`,
		Args:              o.checkArgs,
		RunE:              o.run,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := command.Flags()
	o.bindRelease(command)
	flags.BoolVar(&o.all, "all", false, "Move all releases of the cluster that can be moved.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Only check.")
	flags.StringVar(&o.options.Image, "image", "", "Reference of the image of the chart; by default it is looked for in the ClusterCatalogs.")
	flags.StringVar(&o.options.Repository, "repository", "", "Repository that has the images of charts, as REPOSITORY/CHART:VERSION.")
	flags.StringVar(&o.options.ServiceAccount, "service-account", "", "ServiceAccount of the extension; by default one is created.")
	flags.BoolVar(&o.options.AllowLookup, "allow-lookup", false, "Let the templates of the chart look at the cluster, as the ServiceAccount.")
	cli.NoFiles(command, "image", "repository", "service-account")
	command.AddCommand(newHelmRollbackCommand(), newHelmFinishCommand())
	return command
}

// bindRelease binds what the commands about one release have in common.
func (o *helm) bindRelease(command *cobra.Command) {
	o.bind(command)
	command.Flags().StringVarP(&o.namespace, "namespace", "n", "default", "Namespace of the release.")
	cli.NoFiles(command, "namespace")
}

func (o *helm) checkArgs(_ *cobra.Command, args []string) error {
	switch {
	case o.all && len(args) > 0:
		return errors.New("--all stands in the place of a name: leave one of them out")
	case !o.all && len(args) != 1:
		return errors.New("give the name of a release, or --all")
	case o.all && o.options.Image != "":
		return errors.New("--image is for a single release: --repository is for all")
	case o.options.Image != "" && o.options.Repository != "":
		return errors.New("--image and --repository both say where the chart is: leave one of them out")
	}
	return nil
}

func (o *helm) open(ctx context.Context) (*fromhelm.Cluster, error) {
	config, inspected, err := reach(ctx, &o.cluster)
	if err != nil {
		return nil, err
	}
	return fromhelm.New(config, inspected, time.Now)
}

func (o *helm) run(command *cobra.Command, args []string) error {
	cluster, err := o.open(command.Context())
	if err != nil {
		return err
	}
	var names []helmstore.Name
	if o.all {
		if names, err = cluster.All(command.Context()); err != nil {
			return err
		}
	} else {
		names = append(names, helmstore.Name{Namespace: o.namespace, Name: args[0]})
	}
	o.options.Bundle = o.request()
	var checked []*fromhelm.Checked
	for _, name := range names {
		one, err := cluster.Check(command.Context(), name, o.options)
		if err != nil {
			return err
		}
		checked = append(checked, one)
	}
	if len(checked) == 0 {
		fmt.Fprintln(command.ErrOrStderr(), "there are no releases of Helm")
		return nil
	}
	if err := printReleases(command.OutOrStdout(), checked); err != nil {
		return err
	}
	movable, refused := sorted(checked)
	var left error
	if refused > 0 {
		left = fmt.Errorf("%s of %d cannot be moved", cli.Counted(refused, "release"), len(checked))
	}
	if o.dryRun || len(movable) == 0 {
		return left
	}
	if err := o.confirmed(command, fmt.Sprintf("Move %s?", cli.Counted(len(movable), "release"))); err != nil {
		return err
	}
	return errors.Join(move(command.Context(), cluster, movable, o.helmRun(command)), left)
}

// move goes on with the next release where one fails.
func move(ctx context.Context, cluster *fromhelm.Cluster, movable []*fromhelm.Checked, run fromhelm.Run) error {
	var errs []error
	for _, one := range movable {
		if ctx.Err() != nil {
			break
		}
		if err := cluster.Move(ctx, one, run); err != nil {
			errs = append(errs, fmt.Errorf("%s: %w", one.Name, err))
			continue
		}
		run.Say(fmt.Sprintf("%s is ClusterExtension %q now", one.Name, one.Extension.Name))
	}
	return errors.Join(append(errs, ctx.Err())...)
}

func (o *helm) helmRun(command *cobra.Command) fromhelm.Run {
	how := o.how(command)
	return fromhelm.Run{Timeout: how.Timeout, Say: how.Say, Bundle: how.Bundle}
}

// sorted returns the releases that can be moved, and the number of refused releases.
func sorted(checked []*fromhelm.Checked) (movable []*fromhelm.Checked, refused int) {
	for _, one := range checked {
		switch one.State {
		case fromhelm.Movable, fromhelm.Begun:
			movable = append(movable, one)
		case fromhelm.Refused:
			refused++
		case fromhelm.Moved:
		}
	}
	return movable, refused
}

// printReleases prints a table, and the problems and notes of each release.
func printReleases(to io.Writer, checked []*fromhelm.Checked) error {
	const gap = 3
	table := tabwriter.NewWriter(to, 0, 0, gap, ' ', 0)
	fmt.Fprintln(table, "RELEASE\tCHART\tVERSION\tREVISION\tSTATE")
	for _, one := range checked {
		chart, version := "-", "-"
		if one.Last.Chart != nil && one.Last.Chart.Metadata != nil {
			chart, version = one.Last.Chart.Metadata.Name, one.Last.Chart.Metadata.Version
		}
		row := []string{cli.Printable(one.Name.String()), cli.Printable(chart), cli.Printable(version), strconv.Itoa(one.Last.Version), string(one.State)}
		fmt.Fprintln(table, strings.Join(row, "\t"))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, one := range checked {
		lines := append(append([]string(nil), one.Problems...), one.Notes...)
		if len(lines) == 0 {
			continue
		}
		if err := cli.PrintSections(to, []cli.Section{{Title: one.Name.String() + ":", Lines: lines}}); err != nil {
			return err
		}
	}
	return nil
}

const helmRollbackHelp = `Give a release back to Helm, at the version that is installed. What is installed stays: if the
extension has been upgraded since the move, Helm gets a revision of the new version.

The ClusterExtension is deleted without its content. Its ServiceAccount stays.`

const helmFinishHelp = `End the move of a release: its objects get the labels and the owner of the extension, by which
changes to them are noticed at once, and Helm's records are deleted. There is no rollback after
that.`

func newHelmRollbackCommand() *cobra.Command {
	o := helmEnding{question: "Give release %s back to Helm?", end: (*fromhelm.Cluster).Rollback}
	return o.command("rollback RELEASE -n NAMESPACE", "Give a release back to Helm", helmRollbackHelp)
}

func newHelmFinishCommand() *cobra.Command {
	o := helmEnding{question: "Delete Helm's records of release %s?", end: (*fromhelm.Cluster).Finish}
	return o.command("finish RELEASE -n NAMESPACE", "Delete Helm's records of a release that was moved", helmFinishHelp)
}

// helmEnding is the command line of migrate helm rollback and migrate helm finish.
type helmEnding struct {
	helm

	question string
	end      func(*fromhelm.Cluster, context.Context, helmstore.Name, fromhelm.Run) error
}

func (o *helmEnding) command(use, short, long string) *cobra.Command {
	command := &cobra.Command{
		Use: use, Short: short, Long: long, Args: cobra.ExactArgs(1), RunE: o.run, ValidArgsFunction: cobra.NoFileCompletions,
	}
	o.bindRelease(command)
	return command
}

func (o *helmEnding) run(command *cobra.Command, args []string) error {
	cluster, err := o.open(command.Context())
	if err != nil {
		return err
	}
	name := helmstore.Name{Namespace: o.namespace, Name: args[0]}
	if len(name.Name) > object.MaxReleaseName {
		return program.Misuse(command, errors.New("no release has a name that long"))
	}
	if err := o.confirmed(command, fmt.Sprintf(o.question, cli.Printable(name.String()))); err != nil {
		return err
	}
	return o.end(cluster, command.Context(), name, o.helmRun(command))
}
