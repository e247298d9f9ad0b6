package resolve

import (
	"slices"

	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// Needs says what of a cluster matters to the requirements of the bundles of
// the package.
func (p *Prepared) Needs() requirement.Needs { return p.needs }

// Stated gives the facts about a bundle, and what it requires. There are none, which is
// nil, if the package has no such bundle or states nothing of it.
func (p *Prepared) Stated(name string) (*Facts, requirement.List) {
	i := slices.IndexFunc(p.nodes, func(n node) bool { return n.name == name })
	if i < 0 {
		return nil, requirement.List{}
	}
	return p.nodes[i].facts, p.nodes[i].requirements
}

// Provides says whether a bundle of the package states that it provides an API.
func (p *Prepared) Provides(api requirement.API) bool {
	return p.bestProviding(api, nil) != nil
}
