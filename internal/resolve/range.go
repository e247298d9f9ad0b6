package resolve

import (
	"fmt"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// Range is a set of versions as users ask for it, such as ">=1.2.0 <2.0.0",
// "1.x" or "~1.2 || ^3". The zero value holds every version.
type Range struct {
	text        string
	constraints *semver.Constraints // nil for every version
}

// ParseRange reads a version range; the empty text is any version. The error
// is a [*RangeError].
//
// A comma or a space means and, "||" means or; the operators are =, !=, >, <,
// >=, <=, ~ and ^; missing and "x", "X" or "*" components match anything.
// Pre-releases are in a range only if one of the comparisons joined by and
// names a pre-release. Build metadata and releases never matter.
func ParseRange(text string) (Range, error) {
	if text == "" {
		return Range{}, nil
	}
	constraints, err := semver.NewConstraint(text)
	if err != nil {
		return Range{}, &RangeError{Text: text, Err: err}
	}
	return Range{text: text, constraints: constraints}, nil
}

// Contains says whether the version is in the range.
func (r Range) Contains(version bundle.Version) bool {
	return r.contains(rangeVersion(version))
}

func (r Range) contains(version *semver.Version) bool {
	return r.any() || r.constraints.Check(version)
}

// any says whether there is no rule at all.
func (r Range) any() bool { return r.constraints == nil }

// String is the text that the range was parsed from.
func (r Range) String() string { return r.text }

// Equal says whether both ranges were parsed from the same text.
func (r Range) Equal(other Range) bool { return r.text == other.text }

// rangeVersion is the part of a version that ranges look at.
func rangeVersion(version bundle.Version) *semver.Version {
	identifiers := make([]string, len(version.Pre))
	for i, identifier := range version.Pre {
		identifiers[i] = identifier.String()
	}
	return semver.New(version.Major, version.Minor, version.Patch, strings.Join(identifiers, "."), "")
}

// RangeError is a version range that cannot be parsed.
type RangeError struct {
	Text string
	Err  error
}

func (e *RangeError) Error() string {
	return fmt.Sprintf("desired version range %q is invalid: %v", e.Text, e.Err)
}

func (e *RangeError) Unwrap() error { return e.Err }
