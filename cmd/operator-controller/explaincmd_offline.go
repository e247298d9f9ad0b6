package main

import (
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// offlineChoice is a choice that is made without a cluster, as flags state it.
type offlineChoice struct {
	catalogs                    []string
	reading                     catalogFlags
	priorities                  []string
	pkg, version, policy        string
	channels                    []string
	installed, installedVersion string
	facts                       clusterFacts
}

func (o *offlineChoice) bind(flags *pflag.FlagSet) {
	flags.StringArrayVar(&o.catalogs, "catalog", nil, "Catalog: "+catalogsource.Usage+". Repeat it for several.")
	flags.StringArrayVar(&o.priorities, "priority", nil, "Priority of a catalog as NAME=N, 0 by default; the name is the last element of its path, without a tag or what is behind a dot of a file.")
	flags.StringVar(&o.pkg, "package", "", "Package to choose a bundle of.")
	flags.StringVar(&o.version, "version", "", "Range that the version has to be in.")
	flags.StringArrayVar(&o.channels, "channel", nil, "Channel to choose from. Repeat it for several.")
	flags.StringVar(&o.policy, "policy", string(resolve.CatalogProvided),
		"Which upgrades there are: those that the catalog declares (CatalogProvided), or any (SelfCertified).")
	flags.StringVar(&o.installed, "installed", "", "Name of the bundle that is installed.")
	flags.StringVar(&o.installedVersion, "installed-version", "", "Version of the bundle that is installed, if no catalog has it any more.")
	o.facts.bind(flags)
	o.reading.bind(flags)
}

// given is the first of the flags that somebody set; empty for none.
func (*offlineChoice) given(flags *pflag.FlagSet) string {
	own := pflag.NewFlagSet("", pflag.ContinueOnError)
	new(offlineChoice).bind(own)
	first := ""
	own.VisitAll(func(flag *pflag.Flag) {
		if first == "" && flags.Changed(flag.Name) {
			first = flag.Name
		}
	})
	return first
}

// explain makes the choice. The error is a *usageError, or says which catalog
// cannot be read.
func (o *offlineChoice) explain(command *cobra.Command) (*explained, error) {
	request, err := o.request()
	if err != nil {
		return nil, &usageError{err: err}
	}
	priorities, err := parsePriorities(o.priorities)
	if err != nil {
		return nil, &usageError{err: err}
	}
	reader, err := o.reading.reader(command)
	if err != nil {
		return nil, err
	}
	loaded, err := loadCatalogs(command.Context(), reader, o.catalogs)
	if err != nil {
		return nil, err
	}
	for name := range priorities {
		if !slices.Contains(loaded.names, name) {
			return nil, &usageError{err: fmt.Errorf("no catalog has the name %q that --priority gives: there are %q", name, loaded.names)}
		}
	}
	packages, catalogs := loaded.offers(o.pkg, priorities)
	if request.Installed, err = o.installedBundle(packages); err != nil {
		return nil, &usageError{err: err}
	}
	loaded.addProperties(request.Cluster)
	resolution, err := resolve.Resolve(request, catalogs)
	answer := newExplained(request, catalogs, resolution, err)
	if request.Cluster == nil && err == nil {
		answer.Unchecked = requirementsOf(packages, resolution)
	}
	lacking := resolution.Lacking()
	if failure, ok := errors.AsType[*resolve.Error](err); ok {
		lacking = failure.Lacking()
	}
	answer.supply(loaded.stock().Supply(lacking))
	return answer, nil
}

// request is all of the request but what is installed, which takes the catalogs.
func (o *offlineChoice) request() (resolve.Request, error) {
	policy := resolve.Policy(o.policy)
	switch {
	case len(o.catalogs) == 0:
		return resolve.Request{}, errors.New("--catalog is required, or the name of a ClusterExtension")
	case o.pkg == "":
		return resolve.Request{}, errors.New("--package is required")
	case policy != resolve.CatalogProvided && policy != resolve.SelfCertified:
		return resolve.Request{}, fmt.Errorf("unknown policy %q: it is %s or %s", o.policy, resolve.CatalogProvided, resolve.SelfCertified)
	case o.installed == "" && o.installedVersion != "":
		return resolve.Request{}, errors.New("--installed-version is the version of --installed, which is missing")
	}
	versions, err := resolve.ParseRange(o.version)
	if err != nil {
		return resolve.Request{}, err
	}
	cluster, err := o.facts.cluster()
	return resolve.Request{Package: o.pkg, Range: versions, Channels: o.channels, Policy: policy, Cluster: cluster}, err
}

// installedBundle is nil if none is. A catalog may no longer have it, or have
// another bundle of that name.
func (o *offlineChoice) installedBundle(packages map[string]resolve.Package) (*bundle.Identity, error) {
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
			return &bundle.Identity{Package: o.pkg, Name: o.installed, Version: version}, nil
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

// offers are the catalogs as resolution takes them, and what they have of the
// package by their names.
func (l *loadedCatalogs) offers(pkg string, priorities map[string]int32) (map[string]resolve.Package, []resolve.Catalog) {
	packages := map[string]resolve.Package{}
	catalogs := make([]resolve.Catalog, 0, len(l.names))
	for _, name := range l.names {
		catalog := resolve.Catalog{Name: name, Priority: priorities[name]}
		found, err := l.client.Package(name, pkg)
		switch {
		case err != nil:
			catalog.Err = err
		case found != nil:
			packages[name] = *found
			catalog.Package = resolve.Prepare(packages[name])
		}
		catalogs = append(catalogs, catalog)
	}
	return packages, catalogs
}

// addProperties adds to the extensions of cluster, which may be nil, the
// properties that the first catalog that has their bundle knows.
func (l *loadedCatalogs) addProperties(cluster *requirement.Cluster) {
	if cluster == nil {
		return
	}
	for i := range cluster.Extensions {
		extension := &cluster.Extensions[i]
		for _, name := range l.names {
			found, err := l.client.Package(name, extension.Package)
			if err != nil || found == nil {
				continue
			}
			bundles := found.Bundles
			n := slices.IndexFunc(bundles, func(b resolve.Bundle) bool { return b.Version == extension.Version })
			if n >= 0 {
				extension.Properties = bundles[n].Properties()
				break
			}
		}
	}
}

// requirementsOf is what the chosen bundle states that it needs, as the catalog
// has it.
func requirementsOf(packages map[string]resolve.Package, chosen resolve.Resolution) []string {
	var texts []string
	for _, b := range packages[chosen.Catalog].Bundles {
		if b.Name != chosen.Identity.Name {
			continue
		}
		for _, property := range b.Properties() {
			if !requirement.Parse([]*requirement.Property{property}, "").Empty() {
				texts = append(texts, property.Type+" "+readable(property.Value))
			}
		}
		if !requirement.Parse(nil, b.MinKubernetes()).Empty() {
			texts = append(texts, "minKubeVersion "+b.MinKubernetes())
		}
	}
	return texts
}

// readable returns value, which is valid JSON, with no more escapes than it needs.
func readable(value json.RawMessage) string {
	in := json.NewDecoder(bytes.NewReader(value))
	in.UseNumber()
	var decoded any
	if err := in.Decode(&decoded); err != nil {
		return string(value)
	}
	var text strings.Builder
	out := json.NewEncoder(&text)
	out.SetEscapeHTML(false)
	if err := out.Encode(decoded); err != nil {
		return string(value)
	}
	return strings.TrimSuffix(text.String(), "\n")
}

// stock is all that the catalogs have.
func (l *loadedCatalogs) stock() resolve.Stock {
	return resolve.Stock{
		Catalogs: l.names,
		Package: func(catalog, name string) *resolve.Prepared {
			found, err := l.client.Package(catalog, name)
			if err != nil || found == nil {
				return nil
			}
			return resolve.Prepare(*found)
		},
		Providers: l.client.Providers,
	}
}
