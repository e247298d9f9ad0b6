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
	versions, notices := versionsOf(pkg), pkg.Notices()
	rows := make([]Channel, 0, len(pkg.Channels))
	for _, channel := range pkg.Channels {
		row := Channel{
			Name: channel.Name, Default: channel.Name == byDefault, Bundles: len(channel.Entries),
			Deprecated: noticeOf(notices, resolve.Subject{Scope: resolve.ChannelScope, Name: channel.Name}),
		}
		for _, name := range headsOf(channel) {
			if version, known := versions[name]; known && version != "" {
				row.Heads = append(row.Heads, version)
			}
		}
		slices.SortStableFunc(row.Heads, func(a, b string) int { return bundle.CompareVersions(b, a) })
		for _, entry := range channel.Entries {
			if version := versions[entry.Name]; version != "" && (row.Newest == "" || bundle.CompareVersions(version, row.Newest) > 0) {
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
	notices := pkg.Notices()
	rows := make([]Version, 0, len(pkg.Bundles))
	for _, one := range pkg.Bundles {
		row := Version{
			Version: one.Version, Bundle: one.Name, Image: one.Image, Channels: in[one.Name], HeadOf: heads[one.Name],
			Deprecated: noticeOf(notices, resolve.Subject{Scope: resolve.BundleScope, Name: one.Name}),
			Requires:   requirement.Stated(one.Properties(), one.MinKubernetes()),
		}
		if checker != nil && len(row.Requires) > 0 {
			for _, unmet := range checker.Check(requirement.Parse(one.Properties(), one.MinKubernetes())).Unmet {
				row.Lacking = append(row.Lacking, unmet.Text)
			}
		}
		rows = append(rows, row)
	}
	slices.SortStableFunc(rows, func(a, b Version) int { return bundle.CompareVersions(b.Version, a.Version) })
	return rows
}

// Notice is what a package says against itself as a whole; empty for nothing.
func Notice(pkg resolve.Package) string {
	return noticeOf(pkg.Notices(), resolve.Subject{Scope: resolve.PackageScope})
}

// noticeOf is empty for nothing.
func noticeOf(notices map[resolve.Subject]string, about resolve.Subject) string {
	message, isDeprecated := notices[about]
	if !isDeprecated {
		return ""
	}
	return cmp.Or(message, "deprecated")
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

func rank(is bool) int {
	if is {
		return 1
	}
	return 0
}
