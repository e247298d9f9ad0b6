package resolve

import (
	"math"
	"strings"

	"github.com/Masterminds/semver/v3"
)

// group holds the comparisons that are joined by and.
type group struct {
	comparisons []comparison

	// preReleases says whether a comparison names a pre-release. If none does,
	// the group holds no pre-releases.
	preReleases bool
}

func (g *group) contains(version *semver.Version) bool {
	if version.Prerelease() != "" && !g.preReleases {
		return false
	}
	for i := range g.comparisons {
		if !g.comparisons[i].contains(version) {
			return false
		}
	}
	return true
}

// comparison is a part of the version line, or all but that part.
type comparison struct {
	low, high         *semver.Version // nil for an open end
	lowOpen, highOpen bool            // the end itself is outside

	// except turns the part inside out.
	except bool

	// samePre narrows the part to versions with the pre-release pre: "!=1.2.x"
	// does not leave out 1.2.3-rc.1.
	samePre bool
	pre     string
}

func (c *comparison) contains(version *semver.Version) bool {
	inside := c.above(version) && c.below(version)
	if c.samePre {
		inside = inside && version.Prerelease() == c.pre
	}
	return inside != c.except
}

func (c *comparison) above(version *semver.Version) bool {
	if c.low == nil {
		return true
	}
	order := version.Compare(c.low)
	return order > 0 || order == 0 && !c.lowOpen
}

func (c *comparison) below(version *semver.Version) bool {
	if c.high == nil {
		return true
	}
	order := version.Compare(c.high)
	return order < 0 || order == 0 && !c.highOpen
}

// operand of a comparison.
type operand struct {
	// floor is the lowest version that the operand stands for.
	floor *semver.Version

	// given is how many of major, minor and patch come before the first
	// wildcard.
	given int
}

// last is the highest version that shares the first parts of major, minor and
// patch with the floor.
func (o operand) last(parts int) *semver.Version {
	major, minor, patch := o.floor.Major(), o.floor.Minor(), o.floor.Patch()
	if parts < 2 {
		minor = math.MaxUint64
	}
	if parts < 3 {
		patch = math.MaxUint64
	}
	return semver.New(major, minor, patch, "", "")
}

func (o operand) exact() bool { return o.given == 3 }

func (o operand) zero() bool {
	return o.floor.Major() == 0 && o.floor.Minor() == 0 && o.floor.Patch() == 0
}

// compare gives an operator its meaning. A missing operand part, or a wildcard,
// turns equality into "~".
func (o operand) compare(operator string) comparison {
	switch operator {
	case "", "=":
		if o.exact() {
			return comparison{low: o.floor, high: o.floor}
		}
		return o.tilde()
	case "!=":
		return o.unequal()
	case ">":
		if o.exact() || o.given == 0 {
			return comparison{low: o.floor, lowOpen: true}
		}
		return comparison{low: o.last(o.given), lowOpen: true}
	case "<":
		return comparison{high: o.floor, highOpen: true}
	case ">=", "=>":
		return comparison{low: o.floor}
	case "<=", "=<":
		switch o.given {
		case 3:
			return comparison{high: o.floor}
		case 1:
			return comparison{high: o.last(1)}
		}
		return comparison{high: o.last(2)}
	case "^":
		return o.caret()
	}
	return o.tilde()
}

// tilde: the same minor version, or the same major version if there is no more.
// 0.0.0 is no limit.
func (o operand) tilde() comparison {
	if o.given == 0 || o.exact() && o.zero() {
		return comparison{low: o.floor}
	}
	return comparison{low: o.floor, high: o.last(min(o.given, 2))}
}

// caret: the same leftmost number that is not zero.
func (o operand) caret() comparison {
	parts := 3
	switch {
	case o.floor.Major() > 0, o.given == 1:
		parts = 1
	case o.floor.Minor() > 0, o.given == 2:
		parts = 2
	}
	return comparison{low: o.floor, high: o.last(parts)}
}

func (o operand) unequal() comparison {
	// There is no lower pre-release than "0".
	first := semver.New(o.floor.Major(), o.floor.Minor(), 0, "0", "")
	switch o.given {
	case 1:
		return comparison{low: first, high: o.last(1), except: true}
	case 2:
		return comparison{low: first, high: o.last(2), except: true, samePre: true, pre: o.floor.Prerelease()}
	}
	return comparison{low: o.floor, high: o.floor, except: true}
}

// compile reads constraints in the form in which the library writes them.
//
// The library could be asked for every version instead, but it formats an
// error for each one that is outside, which is most of the time that a
// resolution takes.
func compile(constraints *semver.Constraints) ([]group, error) {
	var groups []group
	for alternative := range strings.SplitSeq(constraints.String(), " || ") {
		var g group
		for text := range strings.FieldsSeq(alternative) {
			version := strings.TrimLeft(text, "=!<>~^")
			o, err := parseOperand(version)
			if err != nil {
				return nil, err
			}
			g.comparisons = append(g.comparisons, o.compare(strings.TrimSuffix(text, version)))
			g.preReleases = g.preReleases || o.floor.Prerelease() != ""
		}
		groups = append(groups, g)
	}
	return groups, nil
}

func parseOperand(text string) (operand, error) {
	text, _, _ = strings.Cut(strings.TrimPrefix(text, "v"), "+")
	numbers, pre, _ := strings.Cut(text, "-")
	parts := strings.Split(numbers, ".")
	o := operand{}
	for o.given < len(parts) && !strings.ContainsAny(parts[o.given], "xX*") {
		o.given++
	}
	full := append(parts[:o.given:o.given], "0", "0", "0")[:3]
	floor := strings.Join(full, ".")
	if pre != "" {
		floor += "-" + pre
	}
	var err error
	o.floor, err = semver.NewVersion(floor)
	return o, err
}
