package upgradegraph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// ForRequest is the graph of a package in the channels of a request, with the path that
// the request leads to from the bundle that is installed; empty for none. The error names
// what the package does not have.
func ForRequest(pkg resolve.Package, request resolve.Request, installed string) (Graph, error) {
	for _, name := range request.Channels {
		if !slices.ContainsFunc(pkg.Channels, func(c resolve.Channel) bool { return c.Name == name }) {
			return Graph{}, fmt.Errorf("package %q has no channel %q; %s", pkg.Name, name, channelsIn(pkg))
		}
	}
	view := View{Channels: request.Channels}
	if installed == "" {
		return New(pkg, view), nil
	}
	at := slices.IndexFunc(pkg.Bundles, func(b resolve.Bundle) bool { return b.Name == installed })
	if at < 0 {
		return Graph{}, fmt.Errorf("package %q has no bundle %q, so its version is not known", pkg.Name, installed)
	}
	request.Installed = &bundle.Identity{Package: pkg.Name, Name: installed, Version: pkg.Bundles[at].Version}
	for _, next := range resolve.Path(request, []resolve.Catalog{{Package: resolve.Prepare(pkg)}}) {
		view.Path = append(view.Path, next.Name)
	}
	return New(pkg, view), nil
}

// channelsIn says which channels a package has.
func channelsIn(pkg resolve.Package) string {
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
