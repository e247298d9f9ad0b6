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

const helmHelp = `Turn releases of Helm into ClusterExtensions, in place. The move writes no object of a release,
and no pod restarts.

The extension gets the name, the namespace, the chart version and the values of the release. Its
chart is the image that --image names, or the one that a ClusterCatalog has; kubectl extension
bundle push pushes one.

Each release is checked first. --dry-run ends after that, and prints the objects that the move
creates. Then:

  1  a pending revision is added to Helm's records, so that Helm refuses to upgrade the release
  2  the last revision of Helm is recorded as installed, in the namespace of the controller
  3  the extension is created, with a ServiceAccount that has the permissions that the release
     requires
  4  the extension becomes ready

If the command is interrupted, run it again. Until migrate helm finish, Helm keeps its records, and
migrate helm rollback gives the release back to Helm. Do not use helm rollback after the move:
Helm does not refuse it.

With --all, the command skips releases that cannot be moved, and then exits with status 1.

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
		Short: "Turn releases of Helm into ClusterExtensions, in place",
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
	flags.BoolVar(&o.all, "all", false, "Move all releases of the cluster that can be moved, or all of --namespace.")
	flags.BoolVar(&o.dryRun, "dry-run", false, "Check, print what would be created, and write nothing.")
	flags.StringVar(&o.options.Image, "image", "", "Reference of the image of the chart; by default it is looked for in the ClusterCatalogs.")
	flags.StringVar(&o.options.Repository, "repository", "", "Repository that has the images of charts, as REPOSITORY/CHART:VERSION.")
	flags.StringVar(&o.options.ServiceAccount, "service-account", "", "ServiceAccount of the extension; by default one is created.")
	flags.BoolVar(&o.options.AllowLookup, "allow-lookup", false, "Let the templates of the chart call lookup: with your permissions while the command checks, and with the permissions of the ServiceAccount afterwards.")
	cli.NoFiles(command, "image", "repository", "service-account")
	command.AddCommand(newHelmRollbackCommand(), newHelmFinishCommand())
	return command
}

// bindRelease binds what the commands about one release have in common.
func (o *helm) bindRelease(command *cobra.Command) {
	o.bind(command)
	command.Flags().StringVarP(&o.namespace, "namespace", "n", "", "Namespace of the release; by default the namespace of the kubeconfig context.")
	cli.NoFiles(command, "namespace")
}

func (o *helm) checkArgs(_ *cobra.Command, args []string) error {
	switch {
	case o.all && len(args) > 0:
		return errors.New("expected the name of a release or --all, got both")
	case !o.all && len(args) != 1:
		return errors.New("expected the name of a release, or --all")
	case o.all && o.options.Image != "":
		return errors.New("--image names one chart: with --all, use --repository")
	case o.options.Image != "" && o.options.Repository != "":
		return errors.New("--image and --repository exclude each other")
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
	checked, err := o.check(command.Context(), cluster, args)
	if err != nil {
		return err
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
	if o.dryRun {
		return errors.Join(printDocuments(command.OutOrStdout(), movable), left)
	}
	if len(movable) == 0 {
		return left
	}
	if err := o.confirmed(command, fmt.Sprintf("Move %s?", cli.Counted(len(movable), "release"))); err != nil {
		return err
	}
	return errors.Join(move(command.Context(), cluster, movable, o.helmRun(command)), left)
}

// check checks the named release, or all. Of all, a release that cannot be checked is refused.
func (o *helm) check(ctx context.Context, cluster *fromhelm.Cluster, args []string) ([]*fromhelm.Checked, error) {
	o.options.Bundle = o.request()
	if !o.all {
		name, err := o.release(args[0])
		if err != nil {
			return nil, err
		}
		one, err := cluster.Check(ctx, name, o.options)
		return []*fromhelm.Checked{one}, err
	}
	names, err := cluster.All(ctx, o.namespace)
	if err != nil {
		return nil, err
	}
	checked := make([]*fromhelm.Checked, 0, len(names))
	for _, name := range names {
		one, err := cluster.Check(ctx, name, o.options)
		if ctx.Err() != nil {
			return nil, err
		}
		if err != nil {
			one = &fromhelm.Checked{Name: name, State: fromhelm.Refused, Problems: []string{err.Error()}}
		}
		checked = append(checked, one)
	}
	fromhelm.RefuseEqualNames(checked)
	return checked, nil
}

// release returns the name of a release with its namespace.
func (o *helm) release(name string) (helmstore.Name, error) {
	namespace, err := o.cluster.Namespace(o.namespace)
	return helmstore.Name{Namespace: namespace, Name: name}, err
}

// printDocuments prints the objects that the moves create.
func printDocuments(to io.Writer, movable []*fromhelm.Checked) error {
	for _, one := range movable {
		if one.Live != nil {
			continue
		}
		documents, err := one.Documents()
		if err != nil {
			return fmt.Errorf("%s: %w", one.Name, err)
		}
		fmt.Fprintf(to, "\n# %s\n", cli.Printable(one.Name.String()))
		if err := cli.PrintDocuments(to, cli.NewOutput(cli.YAML), documents); err != nil {
			return err
		}
	}
	return nil
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
		chart, version, revision := "-", "-", "-"
		if one.Last != nil {
			revision = strconv.Itoa(one.Last.Version)
		}
		if one.Last != nil && one.Last.Chart != nil && one.Last.Chart.Metadata != nil {
			chart, version = one.Last.Chart.Metadata.Name, one.Last.Chart.Metadata.Version
		}
		row := []string{cli.Printable(one.Name.String()), cli.Printable(chart), cli.Printable(version), revision, string(one.State)}
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

const helmRollbackHelp = `Give a release back to Helm, at the installed version. If the extension was upgraded after the
move, a revision of the new version is added to Helm's records. While an upgrade is in progress or
fails, there is no rollback: wait, or set the spec back to the installed version.

The ClusterExtension is deleted, and its objects are kept. Its ServiceAccount is kept, too.`

const helmFinishHelp = `End the move of a release. Its objects get the labels and the owner reference of the extension, by
which changes to them are noticed at once. Helm's records are deleted, so that rollback is not
possible afterwards.`

func newHelmRollbackCommand() *cobra.Command {
	o := helmEnding{question: "Give release %s back to Helm?", end: (*fromhelm.Cluster).Rollback}
	return o.command("rollback RELEASE -n NAMESPACE", "Give a release back to Helm", helmRollbackHelp)
}

func newHelmFinishCommand() *cobra.Command {
	o := helmEnding{question: "Delete Helm's records of release %s? Rollback is not possible afterwards.", end: (*fromhelm.Cluster).Finish}
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
	name, err := o.release(args[0])
	if err != nil {
		return err
	}
	if len(name.Name) > object.MaxReleaseName {
		return program.Misuse(command, fmt.Errorf("names of releases have at most %d characters", object.MaxReleaseName))
	}
	if err := o.confirmed(command, fmt.Sprintf(o.question, cli.Printable(name.String()))); err != nil {
		return err
	}
	return o.end(cluster, command.Context(), name, o.helmRun(command))
}
