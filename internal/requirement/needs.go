package requirement

import "slices"

// With gives what matters to any.
func (n Needs) With(others ...Needs) Needs {
	all := n
	all.Packages = slices.Clone(n.Packages)
	for _, other := range others {
		all.APIs = all.APIs || other.APIs
		all.Packages = append(all.Packages, other.Packages...)
		all.AnyPackage = all.AnyPackage || other.AnyPackage
	}
	slices.Sort(all.Packages)
	all.Packages = slices.Compact(all.Packages)
	return all
}
