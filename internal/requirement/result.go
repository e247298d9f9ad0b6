package requirement

import "slices"

// Result of a check. The zero value says that everything is there.
type Result struct {
	// Unmet are the requirements that the cluster does not meet, in the order
	// of the catalog.
	Unmet []Unmet

	// Err says why it cannot be told whether the others are met: the cluster
	// could not be asked, or a rule costs too much to evaluate. It is nil if
	// Unmet is not empty, because then it makes no difference.
	Err error
}

// Unmet is a requirement that the cluster does not meet.
type Unmet struct {
	// Text is one line for people: what is required and, where somebody wrote
	// it down, why.
	Text string

	// Packages and APIs that, if they came to the cluster, could meet the
	// requirement; sorted. Empty if none can be named.
	Packages []PackageRange
	APIs     []API

	// Kubernetes is the lowest version that will do; empty if something else is
	// required.
	Kubernetes string
}

// Covers says whether a cluster that meets u meets other for certain: they are the
// same, or other is content with an older Kubernetes. Ranges of versions are not
// compared: one that looks wider may leave out the very version that will come.
func (u Unmet) Covers(other Unmet) bool {
	if u.Kubernetes != "" && other.Kubernetes != "" {
		lowest, _ := parseRelease(u.Kubernetes)
		enough, _ := parseRelease(other.Kubernetes)
		return slices.Compare(enough[:], lowest[:]) <= 0
	}
	return u.Text == other.Text && slices.Equal(u.Packages, other.Packages) && slices.Equal(u.APIs, other.APIs)
}

// PackageRange is a package with the versions of it that will do.
type PackageRange struct {
	Package string

	// Range of versions as the catalog has it; empty for any version.
	Range string
}
