package requirement

import (
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// packageLeaf: a version of a package is installed.
type packageLeaf struct {
	name      string
	rangeText string

	// contains is nil if the range is not valid.
	contains semver.Range
}

func (l *packageLeaf) check(c *Checker, negated bool) (bool, error) {
	if l.contains == nil {
		return false, nil
	}
	if c.cluster.ExtensionsErr != nil {
		return false, c.cluster.ExtensionsErr
	}
	return slices.ContainsFunc(c.installed(l.name), l.has) != negated, nil
}

func (l *packageLeaf) has(extension installed) bool {
	return extension.valid && l.contains(extension.parsed.Version)
}

func (l *packageLeaf) clause(c *Checker, negated bool) string {
	wanted := fmt.Sprintf("package %s in %s", excerpt.Quote(l.name), excerpt.Quote(l.rangeText))
	if negated {
		wanted = "no " + wanted
	}
	if l.contains == nil {
		return wanted + ", which is not a valid range"
	}
	var versions []string
	for _, extension := range c.installed(l.name) {
		if !negated || l.has(extension) {
			versions = append(versions, excerpt.Quote(extension.version))
		}
	}
	switch len(versions) {
	case 0:
		return wanted + ", which is not installed"
	case 1:
		return fmt.Sprintf("%s, but version %s is installed", wanted, versions[0])
	}
	return fmt.Sprintf("%s, but versions %s are installed", wanted, join(versions, ", "))
}

// apiLeaf: the cluster serves an API.
type apiLeaf struct {
	api API
}

func (l *apiLeaf) check(c *Checker, negated bool) (bool, error) {
	if c.cluster.APIsErr != nil {
		return false, c.cluster.APIsErr
	}
	return c.cluster.Serves(l.api) != negated, nil
}

func (l *apiLeaf) clause(_ *Checker, negated bool) string {
	text := excerpt.Quote(l.api.String())
	if negated {
		return fmt.Sprintf("no API %s, which the cluster serves", text)
	}
	return fmt.Sprintf("API %s, which the cluster does not serve", text)
}

// unreadableLeaf: a property that cannot be read.
type unreadableLeaf struct {
	property string
	err      error
}

func (l *unreadableLeaf) check(*Checker, bool) (bool, error) { return false, nil }

func (l *unreadableLeaf) clause(*Checker, bool) string {
	return fmt.Sprintf("states a requirement by %s that cannot be read: %s", l.property, excerpt.Fold(l.err.Error()))
}

// unmeetableLeaf: what nothing meets, in words.
type unmeetableLeaf string

func (l unmeetableLeaf) check(*Checker, bool) (bool, error) { return false, nil }

func (l unmeetableLeaf) clause(*Checker, bool) string { return string(l) }
