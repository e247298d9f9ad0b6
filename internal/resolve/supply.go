package resolve

import (
	"cmp"
	"fmt"
	"slices"
	"strings"

	"github.com/blang/semver/v4"

	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// maxVersions bounds the versions that are named where none will do.
const maxVersions = 5

// Provider is a package of a catalog that has a bundle which brings an API.
type Provider struct{ Catalog, Package string }

// Lacking is what the cluster lacks for the chosen bundle and for the awaited one.
func (r *Resolution) Lacking() []requirement.Unmet {
	if r.Awaited == nil {
		return r.Missing
	}
	return slices.Concat(r.Missing, r.Awaited.Missing)
}

// Lacking is what the cluster lacks for the awaited bundle.
func (e *Error) Lacking() []requirement.Unmet {
	if e.Awaited == nil {
		return nil
	}
	return e.Awaited.Missing
}

// Stock is what catalogs have.
type Stock struct {
	Catalogs []string

	// Package is nil if the catalog does not have it.
	Package func(catalog, name string) *Prepared

	Providers func(requirement.API) []Provider
}

// Supply is what would bring what is missing on a cluster, in words; both lists are
// sorted.
type Supply struct {
	// Providers are packages that bring it, with the version to take.
	Providers []string

	// Gaps say what no catalog brings, and what there is instead.
	Gaps []string
}

// Supply finds out who would bring what is missing. Of several alternatives, one is
// enough.
func (s Stock) Supply(missing []requirement.Unmet) Supply {
	var all Supply
	ranges := map[string][]string{}
	for _, unmet := range missing {
		for _, wanted := range unmet.Packages {
			ranges[wanted.Package] = append(ranges[wanted.Package], wanted.Range)
		}
	}
	for _, unmet := range missing {
		var found Supply
		for _, wanted := range unmet.Packages {
			found.add(s.ofPackage(wanted))
		}
		for _, api := range unmet.APIs {
			found.add(s.ofAPI(api, ranges))
		}
		if len(found.Providers) > 0 {
			found.Gaps = nil
		}
		all.add(found)
	}
	slices.Sort(all.Providers)
	slices.Sort(all.Gaps)
	all.Providers, all.Gaps = slices.Compact(all.Providers), slices.Compact(all.Gaps)
	if more := len(all.Gaps) - maxListed; more > 0 {
		all.Gaps = append(all.Gaps[:maxListed], fmt.Sprintf("and %d more", more))
	}
	return all
}

func (s *Supply) add(more Supply) {
	s.Providers = append(s.Providers, more.Providers...)
	s.Gaps = append(s.Gaps, more.Gaps...)
}

func (s Stock) ofPackage(wanted requirement.PackageRange) Supply {
	var found Supply
	for _, catalog := range s.Catalogs {
		prepared := s.Package(catalog, wanted.Package)
		if prepared == nil {
			continue
		}
		if best := prepared.bestIn(wanted.Range); best != nil {
			found.Providers = append(found.Providers, provided(Provider{catalog, wanted.Package}, best))
		} else {
			found.Gaps = append(found.Gaps, fmt.Sprintf("package %q of catalog %q has no version in %q, only %s",
				wanted.Package, catalog, wanted.Range, prepared.someVersions()))
		}
	}
	if len(found.Providers)+len(found.Gaps) == 0 {
		found.Gaps = append(found.Gaps, fmt.Sprintf("no catalog has package %q", wanted.Package))
	}
	return found
}

// ofAPI prefers versions that are in the ranges which are wanted of a package for
// another reason.
func (s Stock) ofAPI(api requirement.API, ranges map[string][]string) Supply {
	var found Supply
	for _, provider := range s.Providers(api) {
		if !slices.Contains(s.Catalogs, provider.Catalog) {
			continue
		}
		prepared := s.Package(provider.Catalog, provider.Package)
		if prepared == nil {
			continue
		}
		if best := cmp.Or(prepared.bestProviding(api, ranges[provider.Package]), prepared.bestProviding(api, nil)); best != nil {
			found.Providers = append(found.Providers, provided(provider, best))
		}
		if len(found.Providers) > maxListed {
			break // nobody reads them all, and each one has to be prepared
		}
	}
	if len(found.Providers) == 0 {
		found.Gaps = append(found.Gaps, fmt.Sprintf("no catalog has a package that brings API %q", api))
	}
	return found
}

func provided(by Provider, best *node) string {
	return fmt.Sprintf("package %q of catalog %q in version %q", by.Package, by.Catalog, best.version)
}

// bestIn is the preferred bundle with a version in a range.
func (p *Prepared) bestIn(versionRange string) *node {
	return p.best([]string{versionRange}, func(*node) bool { return true })
}

// bestProviding is the preferred bundle with an API and a version in all the ranges.
func (p *Prepared) bestProviding(api requirement.API, ranges []string) *node {
	return p.best(ranges, func(n *node) bool {
		return slices.Contains(requirement.Provided(n.properties), api)
	})
}

// best takes ranges in the syntax of skip ranges; an empty one holds every version.
func (p *Prepared) best(ranges []string, suits func(*node) bool) *node {
	var all []semver.Range
	for _, text := range ranges {
		contains, err := parseSkipRange(cmp.Or(text, ">=0.0.0-0"))
		if err != nil {
			return nil
		}
		all = append(all, contains)
	}
	for i := range p.nodes {
		n := &p.nodes[i]
		leavesOut := func(contains semver.Range) bool { return n.versionErr != nil || !contains(n.parsed.Version) }
		if !slices.ContainsFunc(all, leavesOut) && suits(n) {
			return n
		}
	}
	return nil
}

func (p *Prepared) someVersions() string {
	if len(p.nodes) == 0 {
		return "no version at all"
	}
	var versions []string
	for i := range p.nodes {
		versions = append(versions, p.nodes[i].version)
	}
	if more := len(versions) - maxVersions; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(versions[:maxVersions], ", "), more)
	}
	return strings.Join(versions, ", ")
}
