package explain

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/cli"
	"github.com/clusterextensions/operator-controller/internal/cli/program"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// offline is a choice that is made without a cluster, as flags state it.
type offline struct {
	catalogs                    []string
	reading                     cli.Catalogs
	priorities                  []string
	wanted                      cli.Request
	installed, installedVersion string
	facts                       clusterFacts
}

func (o *offline) bind(command *cobra.Command) {
	flags := command.Flags()
	flags.StringArrayVar(&o.catalogs, "catalog", nil, "Catalog: "+catalogsource.Usage+". Repeat it for several.")
	flags.StringArrayVar(&o.priorities, "priority", nil, "Priority of a catalog as NAME=N, 0 by default; the name is the last element of its path, without a tag or what is behind a dot of a file.")
	o.wanted.Bind(command, "Required without a cluster.")
	flags.StringVar(&o.installed, "installed", "", "Name of the bundle that is installed.")
	flags.StringVar(&o.installedVersion, "installed-version", "", "Version of the bundle that is installed, if no catalog has it any more.")
	o.facts.bind(flags)
	o.reading.Bind(flags)
}

// explain makes the choice. The error is a *program.UsageError, or says which catalog
// cannot be read.
func (o *offline) explain(command *cobra.Command) (*answer, error) {
	request, err := o.request()
	if err != nil {
		return nil, &program.UsageError{Err: err}
	}
	priorities, err := parsePriorities(o.priorities)
	if err != nil {
		return nil, &program.UsageError{Err: err}
	}
	loaded, err := o.reading.Load(command, o.catalogs)
	if err != nil {
		return nil, err
	}
	for name := range priorities {
		if !slices.Contains(loaded.Names, name) {
			return nil, &program.UsageError{Err: fmt.Errorf("no catalog has the name %q that --priority gives: there are %q", name, loaded.Names)}
		}
	}
	packages, catalogs := loaded.Offers(o.wanted.Package, priorities)
	if request.Installed, err = o.installedBundle(packages); err != nil {
		return nil, &program.UsageError{Err: err}
	}
	loaded.AddProperties(request.Cluster)
	resolution, err := resolve.Resolve(request, catalogs)
	found := newAnswer(request, catalogs, resolution, err)
	if request.Cluster == nil && err == nil {
		found.Unchecked = requirementsOf(packages[resolution.Catalog], resolution)
	}
	lacking := resolution.Lacking()
	if failure, ok := errors.AsType[*resolve.Error](err); ok {
		lacking = failure.Lacking()
	}
	supply := loaded.Stock().Supply(lacking)
	found.Providers, found.Unprovided = supply.Providers, supply.Gaps
	return found, nil
}

// request is all of the request but what is installed, which takes the catalogs.
func (o *offline) request() (resolve.Request, error) {
	if len(o.catalogs) == 0 {
		return resolve.Request{}, errors.New("--catalog is required, or the name of a ClusterExtension")
	}
	if o.installed == "" && o.installedVersion != "" {
		return resolve.Request{}, errors.New("--installed-version is the version of --installed, which is missing")
	}
	request, err := o.wanted.Parse()
	if err != nil {
		return request, err
	}
	request.Cluster, err = o.facts.cluster()
	return request, err
}

// installedBundle is nil if none is. A catalog may no longer have it, or have
// another bundle of that name.
func (o *offline) installedBundle(packages map[string]resolve.Package) (*bundle.Identity, error) {
	if o.installed == "" {
		return nil, nil
	}
	versions := map[string]bool{}
	if o.installedVersion != "" {
		versions[o.installedVersion] = true
	} else {
		for _, pkg := range packages {
			for _, b := range pkg.Bundles {
				if b.Name == o.installed && b.Version != "" {
					versions[b.Version] = true
				}
			}
		}
	}
	switch len(versions) {
	case 0:
		return nil, fmt.Errorf("no catalog has bundle %q: give its version by --installed-version", o.installed)
	case 1:
		for version := range versions {
			return &bundle.Identity{Package: o.wanted.Package, Name: o.installed, Version: version}, nil
		}
	}
	return nil, fmt.Errorf("catalogs disagree about the version of bundle %q: give it by --installed-version", o.installed)
}

func parsePriorities(texts []string) (map[string]int32, error) {
	priorities := map[string]int32{}
	for _, text := range texts {
		// Names may have the sign in them, numbers do not.
		i := strings.LastIndexByte(text, '=')
		if i < 0 {
			return nil, fmt.Errorf("--priority %q is not NAME=N", text)
		}
		priority, err := strconv.ParseInt(text[i+1:], 10, 32)
		if err != nil {
			return nil, fmt.Errorf("--priority %q is not NAME=N: %w", text, err)
		}
		priorities[text[:i]] = int32(priority)
	}
	return priorities, nil
}

// requirementsOf is what the chosen bundle of the package states that it needs.
func requirementsOf(pkg resolve.Package, chosen resolve.Resolution) []string {
	at := slices.IndexFunc(pkg.Bundles, func(b resolve.Bundle) bool { return b.Name == chosen.Identity.Name })
	if at < 0 {
		return nil
	}
	return requirement.Stated(pkg.Bundles[at].Properties(), pkg.Bundles[at].MinKubernetes())
}
