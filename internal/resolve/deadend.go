package resolve

import (
	"cmp"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// awaited is the bundle that would be the answer if the cluster had what it
// requires.
type awaited struct {
	offer  *offer
	number int

	// leading are the bundles of the offer from which upgrades lead to it; nil as
	// long as nobody had to know.
	leading []bool
}

// findAwaited is nil if no bundle was left out only for what it requires.
func (s *evaluation) findAwaited() *awaited {
	var first *awaited
	for i := range s.offers {
		o := &s.offers[i]
		if o.missing == nil {
			continue // nearly always
		}
		number := slices.Index(o.verdicts, RequirementNotMet)
		if number < 0 || o.pkg.nodes[number].versionErr != nil {
			continue
		}
		if first == nil || first.compare(o, number) > 0 {
			first = &awaited{offer: o, number: number}
		}
	}
	return first
}

// compare is negative if the awaited bundle is preferred to another one, the
// preference between catalogs included.
func (a *awaited) compare(o *offer, number int) int {
	n, other := a.node(), &o.pkg.nodes[number]
	return cmp.Or(
		cmp.Compare(n.rank, other.rank),
		cmp.Compare(o.priority, a.offer.priority),
		other.parsed.Compare(n.parsed),
	)
}

func (a *awaited) node() *node { return &a.offer.pkg.nodes[a.number] }

func (a *awaited) missing() []requirement.Unmet { return a.offer.missing[a.number] }

// avoidDeadEnds picks again once it is known which bundle is awaited: nothing
// older is to take its place if no upgrade would lead on from there.
func (s *evaluation) avoidDeadEnds() {
	s.awaited = s.findAwaited()
	if s.awaited == nil || s.request.Policy == SelfCertified {
		return
	}
	for i := range s.offers {
		if o := &s.offers[i]; o.best >= 0 {
			o.best = -1
			s.pickAgain(o)
		}
	}
}

func (s *evaluation) pickAgain(o *offer) {
	for number, verdict := range o.verdicts {
		if verdict != qualifies || !s.better(o, number) || !s.meets(o, number) {
			continue
		}
		if s.isDeadEnd(o, number) {
			o.verdicts[number] = DeadEnd
		} else {
			o.best = number
		}
	}
}

// isDeadEnd says whether a bundle would be taken in place of the awaited one without
// an upgrade to it. What is installed is no choice to avoid, and neither is the
// newest bundle, unless the catalog advises against it.
//
// Build metadata makes no bundle newer: a version range cannot tell such bundles
// apart, so that nobody could ask for the other one.
func (s *evaluation) isDeadEnd(o *offer, number int) bool {
	n, a := &o.pkg.nodes[number], s.awaited
	if n.versionErr != nil || s.isInstalled(n) || a.compare(o, number) >= 0 {
		return false
	}
	age := n.parsed.Version.Compare(a.node().parsed.Version)
	if age == 0 || age > 0 && n.rank == a.node().rank {
		return false
	}
	return !s.leadsOn(o, number)
}

// leadsOn says whether there is a way of upgrades from a bundle to the awaited one.
// Nearly always it is one upgrade, and there is no need to look at the others.
func (s *evaluation) leadsOn(o *offer, number int) bool {
	a, n := s.awaited, &o.pkg.nodes[number]
	nodes := a.offer.pkg.nodes
	if a.leading != nil && o == a.offer {
		return a.leading[number]
	}
	next := a.offer.pkg.edges.from(n.name, n.parsed, a.offer.selected, len(nodes))
	if next[a.number] && !a.node().isStepBack(n) {
		return true
	}
	if a.leading == nil {
		s.findLeading()
	}
	for to, ok := range next {
		if ok && a.leading[to] && !nodes[to].isStepBack(n) && s.isStep(to) {
			return true
		}
	}
	return false
}

// findLeading goes from the awaited bundle against the upgrades. A step counts if
// the spec lets it be taken, and if nothing but what the awaited bundle lacks too
// can keep it from being taken: the way is open when that is there.
func (s *evaluation) findLeading() {
	a := s.awaited
	nodes := a.offer.pkg.nodes
	a.leading = make([]bool, len(nodes))
	into := a.offer.pkg.edges.into(a.offer.selected, nodes)
	for queue := []int{a.number}; len(queue) > 0; queue = queue[1:] {
		to := queue[0]
		into.each(to, func(from int) {
			if a.leading[from] || nodes[from].versionErr != nil || nodes[to].isStepBack(&nodes[from]) {
				return
			}
			a.leading[from] = true
			if s.isStep(from) {
				queue = append(queue, from)
			}
		})
	}
}

// isStepBack says that another bundle would be kept rather than upgraded to this
// one, whatever the catalog declares.
func (n *node) isStepBack(from *node) bool {
	return n.versionErr != nil || n.rank >= from.rank && n.parsed.Compare(from.parsed) <= 0
}

// isStep says whether a bundle in the catalog of the awaited one can be come by
// on the way there.
func (s *evaluation) isStep(number int) bool {
	o := s.awaited.offer
	switch o.verdicts[number] {
	case NotInChannel, InvalidVersion, OutsideRange:
		return false
	default:
	}
	n := &o.pkg.nodes[number]
	if n.requirements.Empty() {
		return true
	}
	result := s.checker.Check(n.requirements)
	return result.Err == nil && !slices.ContainsFunc(result.Unmet, func(unmet requirement.Unmet) bool {
		return !slices.ContainsFunc(s.awaited.missing(), func(awaited requirement.Unmet) bool { return awaited.Covers(unmet) })
	})
}
