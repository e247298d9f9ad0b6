package requirement

import (
	"github.com/google/cel-go/common/types/ref"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// Checker checks lists against one cluster. It remembers what it found out, and
// bounds the work that all the lists together can cause. It is not safe for
// concurrent use.
type Checker struct {
	cluster  Cluster
	packages map[string][]installed

	// results by the first item of a list: bundles share lists.
	results map[*item]Result

	// Of rules: what came out by their text, the properties by extension, and
	// the cost so far.
	rules map[string]ruleResult
	lists []ref.Val
	spent uint64
}

// installed is an extension of some package.
type installed struct {
	version string
	parsed  bundle.Version
	valid   bool
}

// NewChecker is meant for one resolution.
func NewChecker(cluster Cluster) *Checker {
	return &Checker{cluster: cluster}
}

// Check says what of l the cluster does not meet. The result is shared by all who
// ask for it.
func (c *Checker) Check(l List) Result {
	if l.Empty() {
		return Result{}
	}
	key := &l.items[0]
	result, known := c.results[key]
	if !known {
		result = c.check(l)
		if c.results == nil {
			c.results = map[*item]Result{}
		}
		c.results[key] = result
	}
	return result
}

func (c *Checker) check(l List) Result {
	var result Result
	for i := range l.items {
		met, err := c.met(&l.items[i].term)
		switch {
		case met:
		case err == nil:
			result.Unmet = append(result.Unmet, c.unmet(&l.items[i]))
		case result.Err == nil:
			result.Err = err
		}
	}
	if len(result.Unmet) > 0 {
		result.Err = nil
	}
	return result
}

// met says whether the cluster meets t. The error says that it cannot be told,
// and is the first of those that make it so.
func (c *Checker) met(t *term) (bool, error) {
	if t.leaf != nil {
		return t.leaf.check(c, t.negated)
	}
	var unknown error
	for i := range t.terms {
		met, err := c.met(&t.terms[i])
		if err != nil {
			if unknown == nil {
				unknown = err
			}
			continue
		}
		if met == t.anyOf {
			return met, nil
		}
	}
	return unknown == nil && !t.anyOf, unknown
}

func (c *Checker) installed(name string) []installed {
	if c.packages == nil {
		c.packages = make(map[string][]installed, len(c.cluster.Extensions))
		for _, extension := range c.cluster.Extensions {
			version, err := bundle.ParseVersion(extension.Version)
			c.packages[extension.Package] = append(c.packages[extension.Package],
				installed{version: extension.Version, parsed: version, valid: err == nil})
		}
	}
	return c.packages[name]
}
