package resolve

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// leftOut lists every bundle that was not chosen. The chosen one is among them
// if it failed for a reason.
func (s *evaluation) leftOut(c choice, failed Reason) []LeftOut {
	size := 0
	for i := range s.offers {
		size += len(s.offers[i].verdicts)
	}
	if size == 0 {
		return nil
	}
	list := make([]LeftOut, 0, size)
	details := s.newDetails(c)
	for i := range s.offers {
		o := &s.offers[i]
		details.enter(o)
		for number, reason := range o.verdicts {
			if reason == qualifies {
				reason = c.reason(o, number, failed)
			}
			if reason == qualifies {
				continue
			}
			n := &o.pkg.nodes[number]
			left := LeftOut{
				Name:    n.name,
				Version: n.version,
				Catalog: o.catalog,
				Reason:  reason,
				Detail:  details.of(o, number, reason),
			}
			if reason == RequirementNotMet {
				left.Missing = o.missing[number]
			}
			list = append(list, left)
		}
	}
	return list
}

// awaitedOf finds the awaited bundle among those that were left out, if it is newer
// than the chosen one.
func (s *evaluation) awaitedOf(list []LeftOut, chosen choice) *LeftOut {
	if s.awaited == nil {
		return nil
	}
	n := s.awaited.node()
	if !chosen.empty() && n.parsed.Compare(chosen.winner().parsed) <= 0 {
		return nil
	}
	is := func(left LeftOut) bool {
		return left.Reason == RequirementNotMet && left.Catalog == s.awaited.offer.catalog &&
			left.Name == n.name && left.Version == n.version
	}
	if i := slices.IndexFunc(list, is); i >= 0 {
		return &list[i]
	}
	return nil
}

// reason against a bundle that qualifies; failed for the chosen one.
func (c *choice) reason(o *offer, number int, failed Reason) Reason {
	n := &o.pkg.nodes[number]
	top := o.priority == c.top().priority && o.bestNode().rank == c.rank()
	switch {
	case top && number == o.best:
		return failed
	case n.versionErr != nil:
		return InvalidVersion
	case n.rank > c.rank():
		return Deprecated
	case top:
		return LowerVersion
	}
	return LowerPriority
}

// details are the texts that bundles share.
type details struct {
	// reasons are for the bundles of one catalog.
	reasons map[Reason]string

	// missing is by the first of what is missing: bundles with the same
	// requirements share the list.
	missing map[*requirement.Unmet]string
}

func (s *evaluation) newDetails(c choice) details {
	return details{reasons: s.reasons(c), missing: map[*requirement.Unmet]string{}}
}

func (s *evaluation) reasons(c choice) map[Reason]string {
	d := map[Reason]string{
		NotInChannel: fmt.Sprintf("not in channels %v", s.request.Channels),
		OutsideRange: fmt.Sprintf("not in range %q", s.request.Range),
	}
	if version := s.request.Exactly.Version; version != "" {
		d[OutsideRange] = fmt.Sprintf("not in range %q, or not exactly version %q with the image that is asked for", s.request.Range, version)
	}
	if installed := s.request.Installed; installed != nil {
		d[NoUpgradeEdge] = fmt.Sprintf("no upgrade from %q version %q", installed.Name, installed.Version)
		if installed.Package != s.request.Package {
			d[NoUpgradeEdge] = fmt.Sprintf("no upgrade from package %q", installed.Package)
		}
	}
	if len(s.unreadable) > 0 {
		d[CatalogUnreadable] = fmt.Sprintf("catalogs %v might have a better one", unreadableNames(s.standInTheWay(c)))
	}
	if s.awaited != nil {
		d[DeadEnd] = fmt.Sprintf("no upgrade leads from it to %q, whose requirements are not met", s.awaited.node().name)
	}
	if c.empty() {
		return d
	}
	d[Deprecated] = fmt.Sprintf("%q is not deprecated", c.winner().name)
	d[LowerPriority] = fmt.Sprintf("catalog %q has priority %d", c.top().catalog, c.top().priority)
	d[Tied] = fmt.Sprintf("catalogs %v have priority %d", catalogNames(c.tied), c.top().priority)
	return d
}

// enter moves on to the bundles of another catalog.
func (d details) enter(o *offer) {
	if o.best >= 0 {
		d.reasons[LowerVersion] = fmt.Sprintf("%q has version %q", o.bestNode().name, o.bestNode().version)
	}
}

func (d details) of(o *offer, number int, reason Reason) string {
	n := &o.pkg.nodes[number]
	switch reason {
	case InvalidVersion:
		return n.versionErr.Error()
	case RequirementNotMet:
		return d.ofMissing(o.missing[number])
	case RequirementUnknown:
		return o.unchecked[number].Error()
	case NoUpgradeEdge:
		if fault, found := o.pkg.edges.firstFault(number, o.selected); found {
			return d.reasons[reason] + "; " + fault.String()
		}
	case qualifies, NotInChannel, OutsideRange, DeadEnd, Deprecated, LowerPriority, LowerVersion, CatalogUnreadable, Tied:
	}
	return d.reasons[reason]
}

func (d details) ofMissing(missing []requirement.Unmet) string {
	text, known := d.missing[&missing[0]]
	if !known {
		text = missingText(missing)
		d.missing[&missing[0]] = text
	}
	return text
}

// missingText shows the first few.
func missingText(missing []requirement.Unmet) string {
	texts := make([]string, 0, maxListed+1)
	for _, unmet := range missing[:min(len(missing), maxListed)] {
		texts = append(texts, unmet.Text)
	}
	if more := len(missing) - maxListed; more > 0 {
		texts = append(texts, fmt.Sprintf("and %d more", more))
	}
	return strings.Join(texts, "; ")
}
