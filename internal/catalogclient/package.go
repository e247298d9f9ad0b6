package catalogclient

import "encoding/json"

// Package is one package of a catalog. It is shared by all who asked for it
// and must not be changed.
type Package struct {
	// Name is the name of the package, as opaque text.
	Name string `json:"name"`
	// Channels are sorted by name.
	Channels []Channel `json:"channels,omitempty"`
	// Bundles are sorted by name.
	Bundles []Bundle `json:"bundles,omitempty"`
	// Deprecations are those of all deprecation objects of the package, in the
	// order of the names of the objects and then as written, without repetition.
	Deprecations []Deprecation `json:"deprecations,omitempty"`
}

// Channel is one channel of a package. Nothing in it is verified: its entries
// may name bundles that do not exist, and edges may form a cycle.
type Channel struct {
	Name    string  `json:"name"`
	Entries []Entry `json:"entries,omitempty"`
}

// Entry is one bundle in a channel and the edges that lead to it.
type Entry struct {
	Name     string `json:"name"`
	Replaces string `json:"replaces,omitempty"`
	// Skips are nil for the many entries that skip nothing.
	Skips *Skips `json:"skips,omitempty"`
}

// Skips are the edges to an entry besides the one from what it replaces.
type Skips struct {
	Bundles []string `json:"bundles,omitempty"`
	Range   string   `json:"range,omitempty"`
}

// Bundle is one bundle of a package.
type Bundle struct {
	Name string `json:"name"`
	// Version is the version in the first olm.package property, as written: with
	// the release as build metadata if it has one. It is "" when there is none
	// that can be read.
	Version string `json:"version,omitempty"`
	// Image is the reference of the image with the content of the bundle.
	Image string `json:"image,omitempty"`
	// Facts are nil if there are none. Bundles of one package share equal ones,
	// and a copy has them apart.
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
	Properties []*Property `json:"properties,omitempty"`
}

// Property is a typed fact about a bundle.
type Property struct {
	Type string `json:"type"`
	// Value is valid JSON as the catalog has it, or nil when it has none.
	Value json.RawMessage `json:"value,omitempty"`
}

// Deprecation says that a package, a channel or a bundle is deprecated.
type Deprecation struct {
	// Schema tells what is deprecated: olm.package, olm.channel or olm.bundle.
	Schema string `json:"schema"`
	// Name is the channel or the bundle; it is empty for the package.
	Name    string `json:"name,omitempty"`
	Message string `json:"message,omitempty"`
}
