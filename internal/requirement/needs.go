package requirement

import "slices"

// With gives what matters to either.
func (n Needs) With(other Needs) Needs {
	packages := slices.Concat(n.Packages, other.Packages)
	slices.Sort(packages)
	return Needs{
		APIs:       n.APIs || other.APIs,
		Packages:   slices.Compact(packages),
		AnyPackage: n.AnyPackage || other.AnyPackage,
		Platform:   n.Platform || other.Platform,
	}
}
