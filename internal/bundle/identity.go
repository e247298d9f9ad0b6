package bundle

// Identity names one bundle: what a catalog offers, what a release record
// remembers and what the status shows.
type Identity struct {
	// Package is part of the identity: bundles of two packages are never each
	// other's upgrade, even under one name.
	Package string

	// Name of the bundle as the catalog has it, such as "argocd-operator.v0.8.0".
	Name string

	// Version as text, release included ("1.0.0+2"). See [ParseVersion].
	Version string
}
