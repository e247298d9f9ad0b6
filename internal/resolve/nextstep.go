package resolve

import (
	"fmt"
	"slices"
	"strconv"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// instead is the answer to another request over the same catalogs; nil if there is
// none.
func (s *evaluation) instead(change func(*Request)) *Resolution {
	request := s.request
	change(&request)
	resolution, err := Resolve(request, s.catalogs)
	if err != nil {
		return nil
	}
	return &resolution
}

// explainChannels says which channels there are if one that is asked for is not,
// or else which ones have what fits.
func (s *evaluation) explainChannels() string {
	if len(s.request.Channels) == 0 {
		return ""
	}
	names := s.channelNames(func(*offer, int) bool { return true })
	for _, name := range s.request.Channels {
		switch {
		case slices.Contains(names, name):
		case len(names) == 0:
			return fmt.Sprintf("there is no channel %q, and no other one", name)
		default:
			return fmt.Sprintf("there is no channel %q, only %s", name, listed(quoted(names)))
		}
	}
	if found := s.instead(func(request *Request) { request.Channels = nil }); found != nil {
		return s.explainOtherChannels(found.Identity, "fits and")
	}
	if left := s.firstInRange(); left != nil {
		return s.explainOtherChannels(left.identity(s.request.Package), "matches and")
	}
	return ""
}

func (s *evaluation) explainOtherChannels(wanted bundle.Identity, how string) string {
	names := s.channelNames(func(o *offer, channel int) bool {
		return slices.ContainsFunc(o.pkg.edges.members[channel], func(member int) bool {
			return o.pkg.nodes[member].identity(s.request.Package) == wanted
		})
	})
	switch len(names) {
	case 0:
		return fmt.Sprintf("%q %s is in no channel", wanted.Name, how)
	case 1:
		return fmt.Sprintf("%q %s is in channel %q", wanted.Name, how, names[0])
	}
	return fmt.Sprintf("%q %s is in channels %s", wanted.Name, how, listed(quoted(names)))
}

// firstInRange is the best bundle that a version range asks for and the channels
// leave out.
func (s *evaluation) firstInRange() *node {
	if s.request.Range.any() {
		return nil
	}
	for i := range s.offers {
		for number, reason := range s.offers[i].verdicts {
			n := &s.offers[i].pkg.nodes[number]
			if reason == NotInChannel && n.versionErr == nil && s.request.Range.contains(n.inRange) {
				return n
			}
		}
	}
	return nil
}

// channelNames of all catalogs, sorted.
func (s *evaluation) channelNames(wanted func(o *offer, channel int) bool) []string {
	var names []string
	for i := range s.offers {
		for name, channel := range s.offers[i].pkg.edges.channels {
			if wanted(&s.offers[i], channel) {
				names = append(names, name)
			}
		}
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// explainEdges says where upgrades from the installed bundle lead, and how to get
// to the best one of those that only lack an upgrade edge.
func (s *evaluation) explainEdges() string {
	if !s.constrained() {
		return ""
	}
	var parts []string
	if reachable := s.reachable(); len(reachable) > 0 {
		parts = append(parts, "upgrades lead to "+listed(reachable))
	}
	o, target := s.unreached()
	if o == nil {
		return bounded(parts)
	}
	if route := s.shortest(o, target); len(route) > 1 {
		return bounded(append(parts, o.explainRoute(route)))
	}
	wanted := &o.pkg.nodes[target]
	if from := o.upgradedTo(target); len(from) > 0 {
		parts = append(parts, fmt.Sprintf("%q is an upgrade of %s", wanted.name, listed(from)))
	}
	if found := s.instead(func(request *Request) { request.Policy = SelfCertified }); found != nil {
		parts = append(parts, fmt.Sprintf("upgradeConstraintPolicy SelfCertified goes to %q without an upgrade edge", found.Identity.Name))
	}
	return bounded(parts)
}

// unreached is the best bundle that only lacks an upgrade edge, of the first
// catalog that has one.
func (s *evaluation) unreached() (*offer, int) {
	for i := range s.offers {
		o := &s.offers[i]
		number := slices.Index(o.verdicts, NoUpgradeEdge)
		if number >= 0 && o.pkg.nodes[number].versionErr == nil {
			return o, number
		}
	}
	return nil, 0
}

// explainRoute says what to ask for, unless it is asked for already and only lacks
// what it requires.
func (o *offer) explainRoute(route []int) string {
	var versions []string
	for _, number := range route {
		versions = append(versions, o.pkg.nodes[number].version)
	}
	last := len(versions) - 1
	text := fmt.Sprintf("the way to %s is over %s", versions[last], listed(versions[:last]))
	if o.verdicts[route[0]] == OutsideRange {
		text += fmt.Sprintf(": set version to %q first", versions[0])
	}
	return text
}

// upgradedTo are the versions that a bundle is an upgrade of, highest first.
func (o *offer) upgradedTo(target int) []string {
	var from []int
	o.pkg.edges.into(o.selected, o.pkg.nodes).each(target, func(number int) { from = append(from, number) })
	slices.Sort(from)
	var versions []string
	for _, number := range slices.Compact(from) {
		if number != target {
			versions = append(versions, o.pkg.nodes[number].version)
		}
	}
	return slices.Compact(versions)
}

func quoted(names []string) []string {
	texts := make([]string, len(names))
	for i, name := range names {
		texts[i] = strconv.Quote(name)
	}
	return texts
}
