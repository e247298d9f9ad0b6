package resolve

import "github.com/clusterextensions/operator-controller/internal/requirement"

// Package is one package of a catalog: what is kept of it, and copied in JSON, and what
// is resolved. [Prepare] makes it ready for [Resolve]. It is shared by all who asked for
// it and must not be changed.
type Package struct {
	// Name is the name of the package, as opaque text.
	Name string `json:"name"`

	// Channels are sorted by name when they come from a catalog, and so are Bundles.
	Channels []Channel `json:"channels,omitempty"`
	Bundles  []Bundle  `json:"bundles,omitempty"`

	// Deprecations are those of all deprecation objects of the package, in the
	// order of the names of the objects and then as written, without repetition.
	Deprecations []Deprecation `json:"deprecations,omitempty"`
}

// Channel is a named set of entries. A package has several; entries of one
// bundle in several channels add up. Nothing in it is verified: its entries may name
// bundles that do not exist, and edges may form a cycle.
type Channel struct {
	Name    string  `json:"name"`
	Entries []Entry `json:"entries,omitempty"`
}

// Entry puts a bundle into a channel and declares what it upgrades from.
type Entry struct {
	// Name of the bundle. An entry without a bundle has no effect.
	Name string `json:"name"`

	// Replaces names a bundle that this one upgrades, whether or not the catalog
	// still has it.
	Replaces string `json:"replaces,omitempty"`

	// Skips are nil for the many entries that skip nothing.
	Skips *Skips `json:"skips,omitempty"`
}

// Skips are the edges to an entry besides the one from what it replaces.
type Skips struct {
	// Bundles are names, as that of what an entry replaces.
	Bundles []string `json:"bundles,omitempty"`

	// Range is a range of versions that the entry upgrades, such as
	// ">=1.0.0 <1.2.0". Its syntax is not that of [ParseRange]: no commas, "~"
	// or "^", and pre-releases compare like any other version.
	Range string `json:"range,omitempty"`
}

// Followed are the names that other entries of the channel replace or skip: those that are left
// are its heads.
func (c Channel) Followed() map[string]bool {
	followed := map[string]bool{}
	for _, entry := range c.Entries {
		for _, name := range append([]string{entry.Replaces}, entry.Skipped()...) {
			if name != entry.Name {
				followed[name] = true
			}
		}
	}
	return followed
}

// Skipped are the names of the bundles that the entry skips.
func (e Entry) Skipped() []string {
	if e.Skips == nil {
		return nil
	}
	return e.Skips.Bundles
}

// SkipRange is the range of versions that the entry skips, or "".
func (e Entry) SkipRange() string {
	if e.Skips == nil {
		return ""
	}
	return e.Skips.Range
}

// Bundle is one version of the package.
type Bundle struct {
	Name string `json:"name"`

	// Version as the first olm.package property states it, as written: with the
	// release as build metadata if it has one. It is empty if there is none that can
	// be read.
	Version string `json:"version,omitempty"`

	// Image reference, by tag or by digest.
	Image string `json:"image,omitempty"`

	// Facts are nil if there are none. Bundles of one package share equal ones, and a
	// copy has them apart.
	Facts *Facts `json:"-"`
}

// Facts are what requirements of bundles are about.
type Facts struct {
	// MinKubeVersion is the lowest version of Kubernetes that the bundle runs on,
	// as its CSV has it: that in the first olm.csv.metadata property, or "".
	MinKubeVersion string `json:"minKubeVersion,omitempty"`

	// Properties are in the order of the catalog. A type may come up several
	// times. Those are left out of which there are fields here, rendered manifests
	// and CSV metadata, and those of types that state no requirement if their
	// value is large.
	Properties []*requirement.Property `json:"properties,omitempty"`
}

// Properties are those among the facts.
func (b Bundle) Properties() []*requirement.Property {
	if b.Facts == nil {
		return nil
	}
	return b.Facts.Properties
}

// MinKubernetes is the lowest version of Kubernetes that the bundle says it runs on;
// empty for any.
func (b Bundle) MinKubernetes() string {
	if b.Facts == nil {
		return ""
	}
	return b.Facts.MinKubeVersion
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

// Deprecation says that a package, a channel or a bundle is deprecated.
type Deprecation struct {
	Scope Scope `json:"schema"`

	// Name is the channel or the bundle; it is empty for the package.
	Name    string `json:"name,omitempty"`
	Message string `json:"message,omitempty"`
}

// Subject is what a deprecation is about. A whole package has no name.
type Subject struct {
	Scope Scope
	Name  string
}

// Notices are the messages of deprecations, one for each subject: of several, the greatest, so
// that it does not matter in which order a catalog has them. A message may be empty.
func (p Package) Notices() map[Subject]string {
	notices := make(map[Subject]string, len(p.Deprecations))
	for _, one := range p.Deprecations {
		about := Subject{Scope: one.Scope, Name: one.Name}
		if one.Scope == PackageScope {
			about.Name = ""
		}
		notices[about] = max(notices[about], one.Message)
	}
	return notices
}
