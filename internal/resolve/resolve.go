package resolve

import (
	"cmp"
	"slices"
)

// Resolve chooses the bundle for a request. The package comment states the
// preference. Errors are of type [*Error].
//
// A catalog that cannot be read fails the request only if it might change the
// answer: if no other catalog has one, if its priority is higher than that of
// the catalog that has, or if the answer is a deprecated bundle that is not
// installed yet.
//
// Catalogs of one priority may offer the same bundle without conflict, if name,
// version and image digest agree. An image tag proves nothing.
func Resolve(request Request, catalogs []Catalog) (Resolution, error) {
	s, err := evaluate(request, catalogs)
	if err != nil {
		return Resolution{}, err
	}
	chosen := s.choose()
	if inTheWay := s.standInTheWay(chosen); len(inTheWay) > 0 {
		return Resolution{}, s.unreadableCatalogs(chosen, inTheWay)
	}
	if chosen.empty() {
		return Resolution{}, s.noBundle()
	}
	if !chosen.agreed() {
		return Resolution{}, s.ambiguous(chosen)
	}
	if err := s.refuse(chosen); err != nil {
		return Resolution{}, err
	}
	leftOut := s.leftOut(chosen, "")
	return Resolution{
		Identity:     chosen.winner().identity(request.Package),
		Image:        chosen.winner().image,
		Catalog:      chosen.top().catalog,
		AlsoIn:       catalogNames(chosen.tied[1:]),
		Deprecations: chosen.top().pkg.deprecations,
		LeftOut:      leftOut,
		Awaited:      s.awaitedOf(leftOut, chosen),
		Missing:      chosen.top().missing[chosen.top().best],
		Unreadable:   unreadableNames(s.mightImprove(chosen)),
	}, nil
}

// refuse a chosen bundle that cannot be used.
func (s *evaluation) refuse(chosen choice) error {
	winner := chosen.winner()
	if winner.versionErr != nil {
		failure := s.winnerFailure(BadVersion, chosen)
		failure.LeftOut = s.leftOut(chosen, InvalidVersion)
		failure.Err = winner.versionErr
		return failure
	}
	if err := chosen.top().unchecked[chosen.top().best]; err != nil {
		failure := s.winnerFailure(Unchecked, chosen)
		failure.LeftOut = s.leftOut(chosen, RequirementUnknown)
		failure.Err = err
		return failure
	}
	return nil
}

func (s *evaluation) failure(kind Kind) *Error {
	return &Error{
		Kind:      kind,
		Package:   s.request.Package,
		Range:     s.request.Range,
		Channels:  s.request.Channels,
		Installed: s.request.Installed,
	}
}

func (s *evaluation) winnerFailure(kind Kind, chosen choice) *Error {
	failure := s.failure(kind)
	failure.Bundle = chosen.winner().identity(s.request.Package)
	failure.Catalogs = []string{chosen.top().catalog}
	return failure
}

func (s *evaluation) unreadableCatalogs(chosen choice, inTheWay []Catalog) *Error {
	failure := s.failure(Unreadable)
	if !chosen.empty() && chosen.agreed() {
		failure.Bundle = chosen.winner().identity(s.request.Package)
	}
	failure.Catalogs = unreadableNames(inTheWay)
	failure.LeftOut = s.leftOut(chosen, CatalogUnreadable)
	failure.Err = inTheWay[0].Err
	return failure
}

func (s *evaluation) noBundle() *Error {
	failure := s.failure(NoBundle)
	for _, o := range s.offers {
		failure.Catalogs = append(failure.Catalogs, o.catalog)
	}
	slices.Sort(failure.Catalogs)
	failure.Reachable = s.reachable()
	failure.LeftOut = s.leftOut(choice{}, "")
	failure.Awaited = s.awaitedOf(failure.LeftOut, choice{})
	failure.evaluation = s
	return failure
}

func (s *evaluation) ambiguous(chosen choice) *Error {
	failure := s.failure(Ambiguous)
	failure.Catalogs = catalogNames(chosen.candidates)
	failure.Priority = chosen.top().priority
	failure.LeftOut = s.leftOut(chosen, Tied)
	return failure
}

// reachable versions, highest first.
func (s *evaluation) reachable() []string {
	var found []*node
	for _, o := range s.offers {
		for i, reached := range o.upgrades {
			if n := &o.pkg.nodes[i]; reached && n.versionErr == nil {
				found = append(found, n)
			}
		}
	}
	slices.SortFunc(found, func(a, b *node) int {
		return cmp.Or(b.parsed.Compare(a.parsed), cmp.Compare(a.version, b.version))
	})
	var versions []string
	for _, n := range found {
		versions = append(versions, n.version)
	}
	return slices.Compact(versions)
}

// catalogNames sorted.
func catalogNames(offers []*offer) []string {
	var names []string
	for _, o := range offers {
		names = append(names, o.catalog)
	}
	slices.Sort(names)
	return names
}

func unreadableNames(catalogs []Catalog) []string {
	var names []string
	for _, catalog := range catalogs {
		names = append(names, catalog.Name)
	}
	return names
}
