// Package install has the command that makes the manifest by which a package is installed, and
// installs it.
package install

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/inspect"
	"github.com/clusterextensions/operator-controller/internal/manifest"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

const help = `Print the whole manifest by which a package is installed: the namespace, a ServiceAccount
with the least rights that it takes, and a ClusterExtension. It is for a repository, or for
kubectl apply.

The cluster is asked, with your own rights, which bundle the controller would choose; the
rights are those that bundle rbac prints for it. They are for this version: an upgrade may
take more, and waits until they are granted.

An operator that cannot watch all namespaces watches its own, unless --watch-namespace names
others.

With --apply, the command waits until the controller has pulled new catalogs. The manifest is
applied as you, and what becomes of it is told until the extension is ready, or a person has to
act, which is an error. For that you need the rights to create what is in the manifest, and every
right that it grants.

Images are pulled as the system does it: registries, mirrors and credentials are its.`

// install is the command line.
type install struct {
	wish    wish
	config  string
	apply   bool
	timeout time.Duration
	output  *cli.Choice
	images  cli.Images
	cluster cli.Cluster
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	o := install{output: cli.NewOutput(cli.YAML, cli.JSON)}
	command := &cobra.Command{
		Use:   "install PACKAGE",
		Short: "Print the manifest by which a package is installed, or install it",
		Long:  help,
		Example: `  kubectl extension install sample-operator > sample-operator.yaml
  kubectl extension install sample-operator --version 1.x --apply`,
		Args:              cobra.ExactArgs(1),
		RunE:              o.run,
		ValidArgsFunction: cobra.NoFileCompletions,
	}
	flags := command.Flags()
	o.wish.bind(command)
	flags.StringVar(&o.config, "config", "", "File with the configuration, YAML or JSON, as in spec.config.inline; - for standard input.")
	flags.BoolVar(&o.apply, "apply", false, "Apply the manifest, and wait until the extension is ready.")
	flags.DurationVar(&o.timeout, "timeout", defaultTimeout, "How long to wait with --apply; 0 for as long as it takes.")
	o.output.Bind(command, "o", "Format of the manifest.")
	o.images.Bind(flags)
	o.cluster.BindInspect(command)
	return command
}

func (o *install) run(command *cobra.Command, args []string) error {
	o.wish.pkg = args[0]
	if o.apply && command.Flags().Changed("output") {
		return program.Misuse(command, errors.New("with --apply nothing is printed: leave out --output"))
	}
	if command.Flags().Changed("watch-namespace") && len(o.wish.watchNamespaces) == 0 {
		return program.Misuse(command, errors.New("--watch-namespace is empty, which would mean all namespaces: leave it out for that"))
	}
	if o.timeout < 0 {
		return program.Misuse(command, fmt.Errorf("--timeout %s: it cannot be negative", o.timeout))
	}
	config, err := cli.ReadConfig(command, o.config)
	if err != nil {
		return program.Misuse(command, err)
	}
	ext, err := o.wish.extension(config, false)
	if err != nil {
		return program.Misuse(command, err)
	}
	cluster, err := o.cluster.Inspect(command.Context())
	if err != nil {
		return err
	}
	bundles := o.images.Bundles()
	try := func(ext *ocv1.ClusterExtension) (inspect.Plan, error) {
		return planOf(command.Context(), cluster, ext, bundles)
	}
	if o.apply {
		ctx, cancel := command.Context(), context.CancelFunc(func() {})
		if o.timeout > 0 {
			ctx, cancel = context.WithTimeout(ctx, o.timeout)
		}
		defer cancel()
		try = whenServed(ctx, command.ErrOrStderr(), catalogInterval, try)
	}
	plan, err := o.plan(ext, config, try)
	if err != nil {
		return err
	}
	documents, err := documentsOf(command.ErrOrStderr(), plan)
	if err != nil {
		return err
	}
	if !o.apply {
		return cli.PrintDocuments(command.OutOrStdout(), o.output, documents)
	}
	return applyAndWait(command, cluster, &o.cluster, documents, plan, o.timeout)
}

// plan returns the plan that try makes for ext. If the bundle refuses the namespaces to watch, plan
// tries the other way in which the flags can be meant: a list of one namespace, or without
// --watch-namespace the namespace of the operator. Only the bundle contains its install modes. If
// the bundle refuses that too, plan returns the error of the first try.
func (o *install) plan(ext *ocv1.ClusterExtension, config []byte, try func(*ocv1.ClusterExtension) (inspect.Plan, error)) (inspect.Plan, error) {
	plan, err := try(ext)
	if _, isRefused := errors.AsType[*bundle.ConfigError](err); !isRefused || len(o.wish.watchNamespaces) > 1 {
		return plan, err
	}
	other, asList := o.wish, len(o.wish.watchNamespaces) == 1
	if !asList {
		other.watchNamespaces = []string{ext.Spec.Namespace}
	}
	changed, otherErr := other.extension(config, asList)
	if otherErr != nil {
		return plan, err
	}
	if again, otherErr := try(changed); otherErr == nil {
		return again, nil
	}
	return plan, err
}

// documentsOf makes the manifest of the extension of a plan, and tells people what is chosen.
func documentsOf(told io.Writer, plan inspect.Plan) ([]permission.Document, error) {
	rights, err := plan.Rights()
	if err != nil {
		return nil, err
	}
	documents, err := manifest.Documents(plan.Extension, rights)
	if err != nil {
		return nil, err
	}
	printChoice(told, plan)
	return documents, nil
}

// applyAndWait writes a manifest, and tells what becomes of its extension.
func applyAndWait(command *cobra.Command, cluster *inspect.Cluster, flags *cli.Cluster, documents []permission.Document, plan inspect.Plan, timeout time.Duration) error {
	extensions, err := flags.AllExtensions(command)
	if err != nil {
		return err
	}
	// The controller would try again for as long as somebody waits.
	facts, err := cluster.Foresee(command.Context(), plan)
	if err != nil {
		return err
	}
	if conflict := facts.Conflict(); conflict != nil {
		return fmt.Errorf("nothing was applied: %s", cli.Printable(conflict.Summary()))
	}
	if err := cluster.Apply(command.Context(), documents); err != nil {
		return err
	}
	flags.WarnAbsence(command.Context(), command)
	name := plan.Extension.Name
	follower := &progress{to: command.ErrOrStderr(), version: plan.Resolution.Identity.Version}
	if err := follower.wait(command.Context(), extensions, name, timeout); err != nil {
		return err
	}
	_, err = fmt.Fprintf(command.OutOrStdout(), "clusterextension/%s: version %s is installed, and ready\n", name, follower.last.Installed)
	return err
}

// planOf fails if nothing is chosen.
func planOf(ctx context.Context, cluster *inspect.Cluster, ext *ocv1.ClusterExtension, bundles bundlesource.Reader) (inspect.Plan, error) {
	plan, err := cluster.Plan(ctx, inspect.Request{Name: ext.Name, File: ext, Bundles: bundles, Certificates: cli.ClusterIssuer})
	switch {
	case err != nil:
		return plan, err
	case plan.Err != nil:
		return plan, fmt.Errorf("no bundle is chosen: %s", cli.Printable(plan.Err.Error()))
	case plan.Resolution == nil:
		return plan, errors.New("no bundle is chosen: there is no ClusterCatalog to choose from, or none of that name")
	}
	return plan, nil
}

// printChoice says to people what the manifest is for.
func printChoice(to io.Writer, plan inspect.Plan) {
	chosen := plan.Resolution
	fmt.Fprintln(to, cli.Printable(cli.Chosen(chosen.Identity.Name, chosen.Identity.Version, chosen.Catalog, chosen.Image)))
	unknown := plan.Unknown
	if plan.UnknownBefore != "" {
		unknown = append(unknown, plan.UnknownBefore)
	}
	for _, line := range unknown {
		fmt.Fprintln(to, cli.Printable("not known: "+line))
	}
	if plan.DependsOnCluster {
		fmt.Fprintln(to, cli.UnknownForLookup)
	}
	if plan.LooksInVain {
		fmt.Fprintln(to, bundle.LookupsRefusedText)
	}
	for _, text := range plan.Warnings {
		fmt.Fprintln(to, cli.Printable("warning: "+text))
	}
}
