package upgradegraph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// ForRequest is the graph of a package in the channels of a request, with the path that
// the request leads to from the bundle that is installed, if one is. The version of that has to
// be known where the package does not have the bundle: edges lead from it all the same. Without
// it, the error is an [*UnknownVersionError]; any other names what the package does not have.
func ForRequest(pkg resolve.Package, request resolve.Request) (Graph, error) {
	for _, name := range request.Channels {
		if !slices.ContainsFunc(pkg.Channels, func(c resolve.Channel) bool { return c.Name == name }) {
			return Graph{}, fmt.Errorf("package %q has no channel %q; %s", pkg.Name, name, channelsIn(pkg))
		}
	}
	view := View{Channels: request.Channels}
	if request.Installed == nil {
		return New(pkg, view), nil
	}
	installed := *request.Installed
	at := slices.IndexFunc(pkg.Bundles, func(b resolve.Bundle) bool { return b.Name == installed.Name })
	switch {
	case installed.Version != "":
	case at < 0:
		return Graph{}, &UnknownVersionError{Package: pkg.Name, Bundle: installed.Name}
	default:
		installed.Version = pkg.Bundles[at].Version
	}
	installed.Package, request.Installed = pkg.Name, &installed
	for _, next := range resolve.Path(request, []resolve.Catalog{{Package: resolve.Prepare(pkg)}}) {
		view.Path = append(view.Path, next.Name)
	}
	return New(pkg, view), nil
}

// UnknownVersionError says that the package does not have the bundle that is installed.
type UnknownVersionError struct{ Package, Bundle string }

func (e *UnknownVersionError) Error() string {
	return fmt.Sprintf("package %q has no bundle %q, so its version is not known", e.Package, e.Bundle)
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
