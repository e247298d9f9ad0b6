package packagecard

import (
	"cmp"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Channel is a channel of a package, and where it leads.
type Channel struct {
	Name string `json:"name"`
	// Default says that the catalog recommends it.
	Default bool `json:"default,omitempty"`
	// Heads are the versions of the entries that no other one replaces or skips, newest
	// first. There should be one.
	Heads []string `json:"heads,omitempty"`
	// Newest is the highest version.
	Newest string `json:"newest,omitempty"`
	// Bundles is how many entries it has.
	Bundles int `json:"bundles"`
	// Deprecated is what the catalog says against it; empty for nothing.
	Deprecated string `json:"deprecated,omitempty"`
}

// Version is a bundle of a package.
type Version struct {
	// Version is empty if the bundle has none that can be read.
	Version string `json:"version,omitempty"`
	Bundle  string `json:"bundle"`
	Image   string `json:"image,omitempty"`
	// Channels are those that it is in, and HeadOf those that lead to it.
	Channels []string `json:"channels,omitempty"`
	HeadOf   []string `json:"headOf,omitempty"`
	// Deprecated is what the catalog says against it; empty for nothing.
	Deprecated string `json:"deprecated,omitempty"`
	// Requires are its requirements as the catalog has them, and Lacking is what the cluster
	// does not have of them, if that was looked at.
	Requires []string `json:"requires,omitempty"`
	Lacking  []string `json:"lacking,omitempty"`
}

// Channels are those of a package, the default one first.
func Channels(pkg resolve.Package, byDefault string) []Channel {
	versions, notices := versionsOf(pkg), noticesOf(pkg)
	rows := make([]Channel, 0, len(pkg.Channels))
	for _, channel := range pkg.Channels {
		row := Channel{
			Name: channel.Name, Default: channel.Name == byDefault, Bundles: len(channel.Entries),
			Deprecated: notices[notice{resolve.ChannelScope, channel.Name}],
		}
		for _, name := range headsOf(channel) {
			if version, known := versions[name]; known && version != "" {
				row.Heads = append(row.Heads, version)
			}
		}
		slices.SortStableFunc(row.Heads, func(a, b string) int { return compareVersions(b, a) })
		for _, entry := range channel.Entries {
			if version := versions[entry.Name]; version != "" && (row.Newest == "" || compareVersions(version, row.Newest) > 0) {
				row.Newest = version
			}
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b Channel) int { return cmp.Compare(rank(b.Default), rank(a.Default)) })
	return rows
}

// Versions are all bundles of a package, newest first. Requirements are held against a cluster
// if there is one.
func Versions(pkg resolve.Package, cluster *requirement.Cluster) []Version {
	in, heads := map[string][]string{}, map[string][]string{}
	for _, channel := range pkg.Channels {
		for _, entry := range channel.Entries {
			if known := in[entry.Name]; len(known) == 0 || known[len(known)-1] != channel.Name {
				in[entry.Name] = append(known, channel.Name)
			}
		}
		for _, name := range headsOf(channel) {
			heads[name] = append(heads[name], channel.Name)
		}
	}
	var checker *requirement.Checker
	if cluster != nil {
		checker = requirement.NewChecker(*cluster)
	}
	notices := noticesOf(pkg)
	rows := make([]Version, 0, len(pkg.Bundles))
	for _, one := range pkg.Bundles {
		row := Version{
			Version: one.Version, Bundle: one.Name, Image: one.Image, Channels: in[one.Name], HeadOf: heads[one.Name],
			Deprecated: notices[notice{resolve.BundleScope, one.Name}],
			Requires:   requirement.Stated(one.Properties(), one.MinKubernetes()),
		}
		if checker != nil && len(row.Requires) > 0 {
			for _, unmet := range checker.Check(requirement.Parse(one.Properties(), one.MinKubernetes())).Unmet {
				row.Lacking = append(row.Lacking, unmet.Text)
			}
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b Version) int { return compareVersions(b.Version, a.Version) })
	return rows
}

// Notice is what a package says against itself as a whole; empty for nothing.
func Notice(pkg resolve.Package) string {
	return noticesOf(pkg)[notice{scope: resolve.PackageScope}]
}

// notice is what a deprecation is about. A whole package has no name.
type notice struct {
	scope resolve.Scope
	name  string
}

// noticesOf are the first messages about each: a package has as many as bundles.
func noticesOf(pkg resolve.Package) map[notice]string {
	said := make(map[notice]string, len(pkg.Deprecations))
	for _, one := range pkg.Deprecations {
		about := notice{one.Scope, one.Name}
		if one.Scope == resolve.PackageScope {
			about.name = ""
		}
		if said[about] == "" {
			said[about] = cmp.Or(one.Message, "deprecated")
		}
	}
	return said
}

func versionsOf(pkg resolve.Package) map[string]string {
	versions := make(map[string]string, len(pkg.Bundles))
	for _, one := range pkg.Bundles {
		versions[one.Name] = one.Version
	}
	return versions
}

// headsOf are the entries of a channel that no other one replaces or skips, each once.
func headsOf(channel resolve.Channel) []string {
	known := channel.Followed()
	var heads []string
	for _, entry := range channel.Entries {
		if !known[entry.Name] {
			known[entry.Name] = true
			heads = append(heads, entry.Name)
		}
	}
	return heads
}

// compareVersions has what is no version before all that are.
func compareVersions(a, b string) int {
	one, errOne := bundle.ParseVersion(a)
	other, errOther := bundle.ParseVersion(b)
	if errOne != nil || errOther != nil {
		return cmp.Or(cmp.Compare(rank(errOne == nil), rank(errOther == nil)), cmp.Compare(a, b))
	}
	return one.Compare(other)
}

func rank(is bool) int {
	if is {
		return 1
	}
	return 0
}
