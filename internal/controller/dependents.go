package controller

import (
	"fmt"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// dependents says which neighbours require of a package what they will not have
// once its installed bundle has become another one; nil stands for none at all.
// It is one line for each requirement, sorted by the name of the neighbour.
func dependents(pkg string, becomes *bundle.Identity, observed Observed) []string {
	if len(observed.Surroundings.Requirers) == 0 {
		return nil // nearly always: spare every pass what follows
	}
	var is *bundle.Identity
	if installed := observed.Installation.Installed; installed != nil {
		is = &installed.Bundle
	}
	now := requirement.NewChecker(*clusterAfter(pkg, is, observed))
	then := requirement.NewChecker(*clusterAfter(pkg, becomes, observed))
	var lines []string
	for _, neighbour := range observed.Surroundings.Requirers {
		known := now.Check(neighbour.Requirements).Unmet
		for _, unmet := range then.Check(neighbour.Requirements).Unmet {
			isNew := !slices.ContainsFunc(known, func(k requirement.Unmet) bool { return k.Text == unmet.Text })
			if isNew || concerns(unmet, pkg, observed.Catalogs) {
				lines = append(lines, fmt.Sprintf("extension %q %s", neighbour.Name, unmet.Text))
			}
		}
	}
	return lines
}

// clusterAfter is the cluster with another bundle of the package, without the
// APIs that only its predecessor states to provide.
func clusterAfter(pkg string, becomes *bundle.Identity, observed Observed) *requirement.Cluster {
	cluster := observed.Surroundings.cluster()
	var after []*requirement.Property
	if becomes != nil {
		after = statedBy(becomes.Name, observed.Catalogs)
		cluster.Extensions = append(cluster.Extensions, requirement.Extension{
			Package: pkg, Version: becomes.Version, Properties: after,
		})
	}
	if observed.Installation.Installed == nil || cluster.Serves == nil {
		return cluster
	}
	left := requirement.Provided(after)
	for _, neighbour := range observed.Surroundings.Neighbours {
		left = append(left, requirement.Provided(neighbour.Properties)...)
	}
	gone := slices.DeleteFunc(
		requirement.Provided(statedBy(observed.Installation.Installed.Bundle.Name, observed.Catalogs)),
		func(api requirement.API) bool { return slices.Contains(left, api) })
	serves := cluster.Serves
	cluster.Serves = func(api requirement.API) bool { return serves(api) && !slices.Contains(gone, api) }
	return cluster
}

// statedBy gives the properties of a bundle as the first catalog that has it.
func statedBy(name string, catalogs []resolve.Catalog) []*requirement.Property {
	for _, catalog := range catalogs {
		if catalog.Package == nil {
			continue
		}
		if facts, _ := catalog.Package.Stated(name); facts != nil {
			return facts.Properties
		}
	}
	return nil
}

// concerns says whether a requirement could be met by some bundle of a package.
func concerns(unmet requirement.Unmet, pkg string, catalogs []resolve.Catalog) bool {
	if slices.ContainsFunc(unmet.Packages, func(p requirement.PackageRange) bool { return p.Package == pkg }) {
		return true
	}
	return slices.ContainsFunc(unmet.APIs, func(api requirement.API) bool {
		return slices.ContainsFunc(catalogs, func(catalog resolve.Catalog) bool {
			return catalog.Package != nil && catalog.Package.Provides(api)
		})
	})
}
