package requirement

import (
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/Masterminds/semver/v3"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// release is the major, minor and patch of a platform. Vendors put what they
// like behind those ("v1.33.4-gke.100", "1.36.0+k3s1"); it is not an older
// version.
type release [3]uint64

// parseRelease takes one to three numbers.
func parseRelease(text string) (release, bool) {
	text = strings.TrimPrefix(strings.TrimSpace(text), "v")
	if end := strings.IndexAny(text, "-+"); end >= 0 {
		text = text[:end]
	}
	var parsed release
	for i := range parsed {
		number, rest, more := strings.Cut(text, ".")
		value, err := strconv.ParseUint(number, 10, 32)
		if err != nil {
			return release{}, false
		}
		parsed[i] = value
		if !more {
			return parsed, true
		}
		text = rest
	}
	return release{}, false
}

// kubernetesLeaf: the cluster is of a version or a later one.
type kubernetesLeaf struct {
	text   string
	lowest release
}

func (l *kubernetesLeaf) check(c *Checker, negated bool) (bool, error) {
	has, known := parseRelease(c.cluster.Kubernetes)
	return (!known || slices.Compare(has[:], l.lowest[:]) >= 0) != negated, nil
}

func (l *kubernetesLeaf) clause(c *Checker, _ bool) string {
	return fmt.Sprintf("Kubernetes %s or later, the cluster has %s", excerpt.Quote(l.text), excerpt.Quote(c.cluster.Kubernetes))
}

// kubernetesRangeLeaf: the cluster is of a version that a range has, as Helm knows ranges.
type kubernetesRangeLeaf struct {
	text string

	// contains is nil if the range is not valid.
	contains *semver.Constraints
}

// check compares versions with all that vendors put behind them, as Helm does: that is why
// charts have ranges such as ">=1.25.0-0".
func (l *kubernetesRangeLeaf) check(c *Checker, negated bool) (bool, error) {
	if l.contains == nil {
		return false, nil
	}
	return l.has(c.cluster.Kubernetes) != negated, nil
}

// has takes a version that is not known for one that will do.
func (l *kubernetesRangeLeaf) has(kubernetes string) bool {
	version, err := semver.NewVersion(kubernetes)
	return err != nil || l.contains.Check(version)
}

func (l *kubernetesRangeLeaf) clause(c *Checker, _ bool) string {
	if l.contains == nil {
		return fmt.Sprintf("Kubernetes %s, which is not a valid range", excerpt.Quote(l.text))
	}
	return fmt.Sprintf("Kubernetes %s, the cluster has %s", excerpt.Quote(l.text), excerpt.Quote(c.cluster.Kubernetes))
}

// openShiftLeaf: the cluster is no later minor version of OpenShift.
type openShiftLeaf struct {
	text    string
	highest release
	valid   bool
}

func (l *openShiftLeaf) check(c *Checker, negated bool) (bool, error) {
	return l.supports(c.cluster.OpenShift) != negated, nil
}

func (l *openShiftLeaf) supports(openShift string) bool {
	if openShift == "" {
		return true
	}
	if !l.valid {
		return false
	}
	has, known := parseRelease(openShift)
	return !known || slices.Compare(has[:2], l.highest[:2]) <= 0
}

func (l *openShiftLeaf) clause(c *Checker, _ bool) string {
	if !l.valid {
		return fmt.Sprintf("supports OpenShift up to %s, which is not a version", excerpt.Quote(l.text))
	}
	return fmt.Sprintf("supports OpenShift up to %s, the cluster has %s", excerpt.Quote(l.text), excerpt.Quote(c.cluster.OpenShift))
}
