package resolve

import (
	"cmp"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// Needs says what of a cluster matters to the requirements of the bundles of
// the package.
func (p *Prepared) Needs() requirement.Needs { return p.needs }

// Stated gives the properties of a bundle, and what it requires; nothing if the
// package has no such bundle.
func (p *Prepared) Stated(name string) ([]requirement.Property, requirement.List) {
	i := slices.IndexFunc(p.nodes, func(n node) bool { return n.name == name })
	if i < 0 {
		return nil, requirement.List{}
	}
	return p.nodes[i].properties, p.nodes[i].requirements
}

// Provides says whether a bundle of the package states that it provides an API.
func (p *Prepared) Provides(api requirement.API) bool {
	return slices.ContainsFunc(p.nodes, func(n node) bool {
		return slices.Contains(requirement.Provided(n.properties), api)
	})
}

// Offers says whether the package has a bundle with a version in a range, in the
// syntax of skip ranges; an empty range holds every version.
func (p *Prepared) Offers(versionRange string) bool {
	contains, err := parseSkipRange(cmp.Or(versionRange, ">=0.0.0-0"))
	return err == nil && slices.ContainsFunc(p.nodes, func(n node) bool {
		return n.versionErr == nil && contains(n.parsed.Version)
	})
}

func needsOf(nodes []node) requirement.Needs {
	var all requirement.Needs
	for _, n := range nodes {
		if !n.requirements.Empty() {
			all = all.With(n.requirements.Needs())
		}
	}
	return all
}
