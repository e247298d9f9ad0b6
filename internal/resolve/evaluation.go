package resolve

import (
	"cmp"
	"errors"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// evaluation is what all catalogs offer for a request, and which bundles of each qualify.
type evaluation struct {
	request    Request
	catalogs   []Catalog
	installed  *bundle.Version      // of request.Installed; nil if not known
	checker    *requirement.Checker // nil if requirements do not matter
	offers     []offer              // highest priority first, then by name
	unreadable []Catalog            // by name

	// awaited is nil if no bundle was left out only for what it requires.
	awaited *awaited
}

// offer is what one catalog has of the package.
type offer struct {
	catalog  string
	priority int32
	pkg      *Prepared
	selected selection

	// verdicts and upgrades are by bundle of pkg.
	verdicts []Reason
	upgrades []bool

	// missing is what a bundle lacks on the cluster, and unchecked why that
	// cannot be told, by bundle of pkg.
	missing   map[int][]requirement.Unmet
	unchecked map[int]error

	// best is the first bundle that qualifies; -1 if none does.
	best int
}

func evaluate(request Request, catalogs []Catalog) (*evaluation, error) {
	s := &evaluation{request: request, catalogs: catalogs}
	if request.Cluster != nil {
		s.checker = requirement.NewChecker(*request.Cluster)
	}
	for _, catalog := range catalogs {
		switch {
		case catalog.Err != nil:
			s.unreadable = append(s.unreadable, catalog)
		case catalog.Package != nil && catalog.Package.name == request.Package:
			s.offers = append(s.offers, offer{catalog: catalog.Name, priority: catalog.Priority, pkg: catalog.Package})
		}
	}
	slices.SortFunc(s.unreadable, func(a, b Catalog) int { return cmp.Compare(a.Name, b.Name) })
	slices.SortFunc(s.offers, func(a, b offer) int {
		return cmp.Or(cmp.Compare(b.priority, a.priority), cmp.Compare(a.catalog, b.catalog))
	})
	if err := s.parseInstalled(); err != nil {
		return nil, err
	}
	for i := range s.offers {
		s.judge(&s.offers[i])
	}
	s.avoidDeadEnds()
	return s, nil
}

// constrained says whether upgrades need an edge.
func (s *evaluation) constrained() bool {
	return s.request.Installed != nil && s.request.Policy != SelfCertified
}

// parseInstalled fails only if the version is needed: nothing can be said of
// upgrades if there is nothing to upgrade to, or if every bundle is one.
func (s *evaluation) parseInstalled() error {
	if s.request.Installed == nil {
		return nil
	}
	parsed, err := bundle.ParseVersion(s.request.Installed.Version)
	if err == nil {
		s.installed = &parsed
		return nil
	}
	if !s.constrained() || len(s.offers) == 0 {
		return nil
	}
	failure := s.failure(InvalidInstalled)
	// The message shows the version parser's own words.
	failure.Err = cmp.Or(errors.Unwrap(err), err)
	return failure
}

func (s *evaluation) judge(o *offer) {
	size := len(o.pkg.nodes)
	o.selected = o.pkg.edges.selectChannels(s.request.Channels)
	var member []bool
	if len(s.request.Channels) > 0 {
		member = o.pkg.edges.in(o.selected, size)
	}
	o.upgrades = s.upgrades(o)
	o.verdicts = make([]Reason, size)
	o.best = -1
	for i := range o.pkg.nodes {
		if member != nil && !member[i] {
			o.verdicts[i] = NotInChannel
			continue
		}
		o.verdicts[i] = s.verdict(o, i)
		if o.verdicts[i] == qualifies && s.better(o, i) && s.meets(o, i) {
			o.best = i
		}
	}
}

// meets says whether the cluster has what a bundle requires, or might have it.
// Only a bundle that would be the best so far is asked. One that is installed
// stays whatever it lacks: it would lack it no less if it were removed.
func (s *evaluation) meets(o *offer, number int) bool {
	n := &o.pkg.nodes[number]
	if s.checker == nil || n.requirements.Empty() {
		return true
	}
	result := s.checker.Check(n.requirements)
	if len(result.Unmet) > 0 {
		if o.missing == nil {
			o.missing = map[int][]requirement.Unmet{}
		}
		o.missing[number] = result.Unmet
	}
	if s.isInstalled(n) {
		return true
	}
	if len(result.Unmet) > 0 {
		o.verdicts[number] = RequirementNotMet
		return false
	}
	if result.Err != nil {
		if o.unchecked == nil {
			o.unchecked = map[int]error{}
		}
		o.unchecked[number] = result.Err
	}
	return true
}

// upgrades is nil if no edge is needed.
func (s *evaluation) upgrades(o *offer) []bool {
	if !s.constrained() {
		return nil
	}
	if s.request.Installed.Package != s.request.Package {
		return make([]bool, len(o.pkg.nodes))
	}
	return o.pkg.edges.from(s.request.Installed.Name, *s.installed, o.selected, len(o.pkg.nodes))
}

// verdict on a bundle in the requested channels.
func (s *evaluation) verdict(o *offer, number int) Reason {
	n := &o.pkg.nodes[number]
	if !s.request.Range.any() {
		if n.versionErr != nil {
			return InvalidVersion
		}
		if !s.request.Range.contains(n.inRange) {
			return OutsideRange
		}
	}
	if !s.request.Exactly.is(n) {
		return OutsideRange
	}
	if o.upgrades != nil && !o.upgrades[number] && !s.stays(n) {
		return NoUpgradeEdge
	}
	return qualifies
}

// stays says whether the bundle has the version that is installed. The name
// does not matter: a renamed bundle of the same version is no upgrade.
func (s *evaluation) stays(n *node) bool {
	return s.installed != nil && s.request.Installed.Package == s.request.Package &&
		n.versionErr == nil && n.parsed.Compare(*s.installed) == 0
}

// isInstalled says whether the bundle is the installed one, by name too.
func (s *evaluation) isInstalled(n *node) bool {
	return s.stays(n) && n.name == s.request.Installed.Name
}

// better relies on the order of the bundles, in which only one thing is left
// open: of two with the same version, the installed one is to stay.
func (s *evaluation) better(o *offer, number int) bool {
	if o.best < 0 {
		return true
	}
	best, n := &o.pkg.nodes[o.best], &o.pkg.nodes[number]
	return n.rank == best.rank && s.isInstalled(n) && s.stays(best)
}

func (o *offer) bestNode() *node { return &o.pkg.nodes[o.best] }
