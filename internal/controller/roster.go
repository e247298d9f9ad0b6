package controller

import (
	"maps"
	"slices"

	"k8s.io/apimachinery/pkg/util/sets"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// Neighbour is another extension with a bundle installed.
type Neighbour struct {
	Name   string
	Bundle bundle.Identity

	// Properties of the bundle, and what it requires, as catalogs have them.
	Properties   []*requirement.Property
	Requirements requirement.List
}

// concern is an extension that looks at others.
type concern struct {
	extension, pkg string

	// needs are what matters to the bundles of its package, and provides the APIs that
	// its installed bundle states to provide.
	needs    requirement.Needs
	provides []requirement.API
}

// roster finds neighbours by what they can matter to.
type roster struct {
	neighbours map[string]Neighbour
	having     map[trait]sets.Set[string]
}

// trait is what neighbours are found by.
type trait struct {
	kind traitKind
	of   string
}

type traitKind int

const (
	// ofPackage: a bundle of it is installed.
	ofPackage traitKind = iota
	// requiresPackage: the bundle states so.
	requiresPackage
	// looksAround: it requires APIs, which others may provide, or has rules about all
	// others.
	looksAround
	// providesAPI: the bundle states so.
	providesAPI
)

func newRoster() roster {
	return roster{neighbours: map[string]Neighbour{}, having: map[trait]sets.Set[string]{}}
}

func traitsOf(n Neighbour) []trait {
	traits := []trait{{kind: ofPackage, of: n.Bundle.Package}}
	needs := n.Requirements.Needs()
	if needs.AnyPackage || needs.APIs {
		traits = append(traits, trait{kind: looksAround})
	}
	for _, pkg := range needs.Packages {
		traits = append(traits, trait{kind: requiresPackage, of: pkg})
	}
	for _, api := range requirement.Provided(n.Properties) {
		traits = append(traits, trait{kind: providesAPI, of: api.String()})
	}
	return traits
}

func (r roster) add(n Neighbour) {
	r.neighbours[n.Name] = n
	for _, t := range traitsOf(n) {
		if r.having[t] == nil {
			r.having[t] = sets.New[string]()
		}
		r.having[t].Insert(n.Name)
	}
}

func (r roster) drop(name string) {
	for _, t := range traitsOf(r.neighbours[name]) {
		r.having[t].Delete(name)
		if r.having[t].Len() == 0 {
			delete(r.having, t)
		}
	}
	delete(r.neighbours, name)
}

// concerning gives the neighbours that an extension is to be checked against, and those
// that are to be checked if it changes, which looks at others in turn.
func (r roster) concerning(c concern) (others, requirers []Neighbour) {
	requiring := r.having[trait{kind: requiresPackage, of: c.pkg}].Union(r.having[trait{kind: looksAround}])
	requiring.Delete(c.extension)
	requirers = r.sorted(requiring)
	needs := c.needs
	for _, n := range requirers {
		needs = needs.With(n.Requirements.Needs())
	}
	found := r.having[trait{kind: ofPackage, of: c.pkg}].Clone()
	for _, pkg := range needs.Packages {
		found = found.Union(r.having[trait{kind: ofPackage, of: pkg}])
	}
	for _, api := range c.provides {
		found = found.Union(r.having[trait{kind: providesAPI, of: api.String()}])
	}
	if needs.AnyPackage {
		found = sets.KeySet(r.neighbours)
	}
	found.Delete(c.extension)
	return r.sorted(found), requirers
}

// sorted gives neighbours in the order of their names.
func (r roster) sorted(names sets.Set[string]) []Neighbour {
	neighbours := make([]Neighbour, 0, len(names))
	for _, name := range slices.Sorted(maps.Keys(names)) {
		neighbours = append(neighbours, r.neighbours[name])
	}
	return neighbours
}
