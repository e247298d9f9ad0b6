// Package graph has the command that draws upgrades.
package graph

import (
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/resolve"
	"github.com/clusterextensions/operator-controller/internal/upgradegraph"
)

// formats are the values of --output.
var formats = map[string]func(upgradegraph.Graph, io.Writer) error{
	"mermaid": upgradegraph.Graph.WriteMermaid,
	"dot":     upgradegraph.Graph.WriteDOT,
	"svg":     upgradegraph.Graph.WriteSVG,
}

// graph is the command line of graph.
type graph struct {
	sources  []string
	catalogs cli.Catalogs
	wanted   cli.Request
	output   *cli.Choice

	installed, installedVersion string
}

// NewCommand returns the command.
func NewCommand() *cobra.Command {
	o := graph{output: cli.NewOutput("mermaid", "dot", "svg")}
	command := &cobra.Command{
		Use:   "graph --catalog CATALOG --package NAME",
		Short: "Draw which versions of a package upgrade which",
		Long: `Draw which versions of a package upgrade which, in which channels, and what is
deprecated.

With --installed, the upgrades are marked that a ClusterExtension would go through
from there, one after the other, if it had the other flags as its spec. What
bundles require of a cluster is not looked at.

` + cli.CatalogHelp,
		Example: `  kubectl extension graph --catalog ./catalog --package sample-operator
  kubectl extension graph --catalog ./catalog --package sample-operator \
    --installed sample-operator.v1.0.0 --version 1.x -o svg > upgrades.svg`,
		Args: cobra.NoArgs,
		RunE: o.run,
	}
	flags := command.Flags()
	flags.StringArrayVar(&o.sources, "catalog", nil, "Catalog: "+catalogsource.Usage+". Required.")
	flags.StringVar(&o.installed, "installed", "", "Name of the bundle from which to mark upgrades.")
	flags.StringVar(&o.installedVersion, "installed-version", "", "Version of that bundle, if the catalog does not have it any more.")
	cli.NoFiles(command, "installed", "installed-version")
	o.wanted.Bind(command, "Required.")
	o.output.Bind(command, "o", "Format of the drawing.")
	o.catalogs.Bind(flags)
	return command
}

func (o *graph) run(command *cobra.Command, _ []string) error {
	request, err := o.request(command)
	if err != nil {
		return program.Misuse(command, err)
	}
	loaded, err := o.catalogs.Load(command, o.sources)
	if usage, ok := errors.AsType[*program.UsageError](err); ok {
		return program.Misuse(command, usage.Err)
	}
	if err != nil {
		return err
	}
	packages, offers := loaded.Offers(request.Package, nil)
	pkg, ok := packages[loaded.Names[0]]
	switch {
	case offers[0].Err != nil:
		return offers[0].Err
	case !ok:
		return fmt.Errorf("the catalog has no package %q", request.Package)
	}
	drawn, err := upgradegraph.ForRequest(pkg, request)
	if _, unknown := errors.AsType[*upgradegraph.UnknownVersionError](err); unknown {
		return fmt.Errorf("%w: give it by --installed-version", err)
	}
	if err != nil {
		return err
	}
	return formats[o.output.String()](drawn, command.OutOrStdout())
}

// request is what is asked for, as far as it can be told without the catalog.
func (o *graph) request(command *cobra.Command) (resolve.Request, error) {
	switch len(o.sources) {
	case 0:
		return resolve.Request{}, errors.New("--catalog is required")
	case 1:
	default:
		return resolve.Request{}, errors.New("--catalog is there more than once: the graph is that of one catalog")
	}
	for _, flag := range []string{"version", "policy", "installed-version"} {
		if o.installed == "" && command.Flags().Changed(flag) {
			return resolve.Request{}, fmt.Errorf("--%s says nothing without --installed", flag)
		}
	}
	request, err := o.wanted.Parse()
	if _, wrong := bundle.ParseVersion(o.installedVersion); wrong != nil && o.installedVersion != "" {
		return request, fmt.Errorf("--installed-version: %w", wrong)
	}
	if err == nil && o.installed != "" {
		request.Installed = &bundle.Identity{Name: o.installed, Version: o.installedVersion}
	}
	return request, err
}
