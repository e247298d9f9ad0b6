package resolve

import "github.com/clusterextensions/operator-controller/internal/requirement"

// Package is what one catalog says about one package, as far as resolution
// reads it. [Prepare] makes it ready for [Resolve].
type Package struct {
	Name         string
	Channels     []Channel
	Bundles      []Bundle
	Deprecations []Deprecation
}

// Channel is a named set of entries. A package has several; entries of one
// bundle in several channels add up.
type Channel struct {
	Name    string
	Entries []Entry
}

// Entry puts a bundle into a channel and declares what it upgrades from.
type Entry struct {
	// Name of the bundle. An entry without a bundle has no effect.
	Name string

	// Replaces and Skips name the bundles that this one upgrades, whether or
	// not the catalog still has them.
	Replaces string
	Skips    []string

	// SkipRange is a range of versions that this bundle upgrades, such as
	// ">=1.0.0 <1.2.0". Its syntax is not that of [ParseRange]: no commas, "~"
	// or "^", and pre-releases compare like any other version.
	SkipRange string
}

// Bundle is one version of the package.
type Bundle struct {
	Name string

	// Version as the bundle's olm.package property states it; empty if there is
	// no such property.
	Version string

	// Image reference, by tag or by digest.
	Image string

	// Properties in the order of the catalog. Those that state no requirement
	// are ignored.
	Properties []requirement.Property

	// MinKubernetes is the lowest version of Kubernetes that the bundle says it
	// runs on; empty for any.
	MinKubernetes string
}

// Scope says what a deprecation is about. The values are the schema names that
// catalogs use in the reference of a deprecation.
type Scope string

const (
	// PackageScope deprecates the package as a whole.
	PackageScope Scope = "olm.package"

	// ChannelScope deprecates the named channel.
	ChannelScope Scope = "olm.channel"

	// BundleScope deprecates the named bundle. Only this one has a part in
	// the choice; the others are information.
	BundleScope Scope = "olm.bundle"
)

// Deprecation is one entry of a package's deprecations.
type Deprecation struct {
	Scope   Scope
	Name    string
	Message string
}
