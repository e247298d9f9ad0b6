package main

import (
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/resolve"
	"github.com/clusterextensions/operator-controller/internal/upgradegraph"
)

// graphFormats are the values of --output.
var graphFormats = map[string]func(upgradegraph.Graph, io.Writer) error{
	"mermaid": upgradegraph.Graph.WriteMermaid,
	"dot":     upgradegraph.Graph.WriteDOT,
	"svg":     upgradegraph.Graph.WriteSVG,
}

// graphCommand is the command line of graph.
type graphCommand struct {
	catalog   string
	catalogs  catalogFlags
	pkg       string
	installed string
	versions  string
	channels  []string
	policy    string
	output    string
}

func newGraphCommand() *cobra.Command {
	o := graphCommand{policy: string(resolve.CatalogProvided), output: "mermaid"}
	command := &cobra.Command{
		Use:   "graph --catalog CATALOG --package NAME",
		Short: "Draw which versions of a package upgrade which",
		Long: `Draw which versions of a package upgrade which, in which channels, and what is
deprecated.

With --installed, the upgrades are marked that a ClusterExtension would go through
from there, one after the other, if it had the other flags as its spec. What
bundles require of a cluster is not looked at.

` + catalogHelp + `

Exit codes: 0 drawn, 1 the catalog cannot be read, or does not have what was asked
for, 2 wrong usage.`,
		Example: `  operator-controller graph --catalog ./catalog --package sample-operator
  operator-controller graph --catalog ./catalog --package sample-operator \
    --installed sample-operator.v1.0.0 --version 1.x -o svg > upgrades.svg`,
		Args: cobra.NoArgs,
		RunE: func(command *cobra.Command, _ []string) error { return o.run(command) },
	}
	flags := command.Flags()
	flags.StringVar(&o.catalog, "catalog", "", "Catalog: "+catalogsource.Usage+". Required.")
	flags.StringVar(&o.pkg, "package", "", "Package to draw. Required.")
	flags.StringArrayVar(&o.channels, "channel", nil, "Channel to draw, and to upgrade in. May be repeated; by default all.")
	flags.StringVar(&o.installed, "installed", "", "Name of the bundle from which to mark upgrades.")
	flags.StringVar(&o.versions, "version", "", "Range of versions to upgrade to, such as 1.x.")
	flags.StringVar(&o.policy, "policy", o.policy, "Upgrades that are allowed: CatalogProvided or SelfCertified.")
	flags.StringVarP(&o.output, "output", "o", o.output, "Format: mermaid, dot or svg.")
	o.catalogs.bind(flags)
	return command
}

func (o graphCommand) run(command *cobra.Command) error {
	request, err := o.request(command)
	if err != nil {
		return misuse(command, err)
	}
	reader, err := o.catalogs.reader(command)
	if err != nil {
		return err
	}
	packages, err := loadPackages(command.Context(), reader, []string{o.catalog}, o.pkg)
	if usage, ok := errors.AsType[*usageError](err); ok {
		return misuse(command, usage.err)
	}
	if err != nil {
		return err
	}
	if len(packages) == 0 {
		return fmt.Errorf("the catalog has no package %q", o.pkg)
	}
	graph, err := o.graph(request, packages[0].Package)
	if err != nil {
		return err
	}
	return graphFormats[o.output](graph, command.OutOrStdout())
}

// request is what is asked for, as far as it can be told without the catalog.
func (o graphCommand) request(command *cobra.Command) (resolve.Request, error) {
	request := resolve.Request{Package: o.pkg, Channels: o.channels, Policy: resolve.Policy(o.policy)}
	switch {
	case o.catalog == "":
		return request, errors.New("--catalog is required")
	case o.pkg == "":
		return request, errors.New("--package is required")
	case graphFormats[o.output] == nil:
		return request, fmt.Errorf("unknown output %q: it is mermaid, dot or svg", o.output)
	case request.Policy != resolve.CatalogProvided && request.Policy != resolve.SelfCertified:
		return request, fmt.Errorf("unknown policy %q: it is %s or %s", o.policy, resolve.CatalogProvided, resolve.SelfCertified)
	}
	for _, flag := range []string{"version", "policy"} {
		if o.installed == "" && command.Flags().Changed(flag) {
			return request, fmt.Errorf("--%s says nothing without --installed", flag)
		}
	}
	var err error
	request.Range, err = resolve.ParseRange(o.versions)
	return request, err
}

// graph of a package, with what the request leads to if something is installed.
func (o graphCommand) graph(request resolve.Request, pkg resolve.Package) (upgradegraph.Graph, error) {
	for _, name := range o.channels {
		if !slices.ContainsFunc(pkg.Channels, func(c resolve.Channel) bool { return c.Name == name }) {
			return upgradegraph.Graph{}, fmt.Errorf("package %q has no channel %q; %s", o.pkg, name, channelsOf(pkg))
		}
	}
	view := upgradegraph.View{Channels: o.channels}
	if o.installed == "" {
		return upgradegraph.New(pkg, view), nil
	}
	at := slices.IndexFunc(pkg.Bundles, func(b resolve.Bundle) bool { return b.Name == o.installed })
	if at < 0 {
		return upgradegraph.Graph{}, fmt.Errorf("package %q has no bundle %q, so its version is not known", o.pkg, o.installed)
	}
	request.Installed = &bundle.Identity{Package: o.pkg, Name: o.installed, Version: pkg.Bundles[at].Version}
	for _, next := range resolve.Path(request, []resolve.Catalog{{Name: o.catalog, Package: resolve.Prepare(pkg)}}) {
		view.Path = append(view.Path, next.Name)
	}
	return upgradegraph.New(pkg, view), nil
}

// channelsOf says which channels a package has.
func channelsOf(pkg resolve.Package) string {
	const shown = 10
	var names []string
	for _, channel := range pkg.Channels[:min(len(pkg.Channels), shown)] {
		names = append(names, fmt.Sprintf("%q", channel.Name))
	}
	switch more := len(pkg.Channels) - shown; {
	case len(names) == 0:
		return "it has none"
	case more > 0:
		return fmt.Sprintf("it has %s and %d more", strings.Join(names, ", "), more)
	}
	return "it has " + strings.Join(names, ", ")
}
