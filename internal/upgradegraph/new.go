package upgradegraph

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// New returns the graph of a package.
func New(pkg resolve.Package, view View) Graph {
	b := &builder{
		bundles: bundlesByName(pkg.Bundles),
		notices: pkg.Notices(),
		numbers: map[string]int{},
		edges:   map[upgrade]*Edge{},
		ranges:  map[string]semver.Range{},
	}
	b.graph.Package = pkg.Name
	b.graph.Notice = b.notice(resolve.PackageScope, "")
	channels := channelsOf(pkg, view)
	b.addNodes(pkg, channels, view)
	for _, channel := range b.addChannels(channels) {
		b.addEntries(channel)
	}
	reaches := b.reaches()
	b.addRangeEdges(reaches)
	b.addPath(reaches, view.Path)
	b.addEdges()
	return b.graph
}

// builder of a graph.
type builder struct {
	graph Graph

	bundles map[string]resolve.Bundle
	notices map[resolve.Subject]string

	// versions and numbers are those of the nodes.
	versions []version
	numbers  map[string]int
	edges    map[upgrade]*Edge

	// ranges by their text; nil is an invalid one.
	ranges map[string]semver.Range
}

// upgrade identifies an edge.
type upgrade struct {
	from, to int
	kind     Kind
}

// bundlesByName takes one bundle for each name. A catalog with several is wrong;
// which of them it is only has to be the same every time.
func bundlesByName(bundles []resolve.Bundle) map[string]resolve.Bundle {
	byName := make(map[string]resolve.Bundle, len(bundles))
	for _, bundle := range bundles {
		if known, again := byName[bundle.Name]; !again || known.Version < bundle.Version {
			byName[bundle.Name] = bundle
		}
	}
	return byName
}

// notice is what a catalog says against something of the package.
func (b *builder) notice(scope resolve.Scope, name string) Notice {
	message, isDeprecated := b.notices[resolve.Subject{Scope: scope, Name: name}]
	return Notice{Deprecated: isDeprecated, Message: message}
}

// edge is the edge for u, which is new if there was none.
func (b *builder) edge(u upgrade) *Edge {
	if b.edges[u] == nil {
		b.edges[u] = &Edge{From: u.from, To: u.to, Kind: u.kind}
	}
	return b.edges[u]
}

// addEdges adds the edges, sorted by how much a drawing needs them, to the graph.
func (b *builder) addEdges() {
	edges := make([]Edge, 0, len(b.edges))
	for _, edge := range b.edges {
		edge.Channels = sortedSet(edge.Channels)
		edges = append(edges, *edge)
	}
	slices.SortFunc(edges, func(x, y Edge) int {
		return cmp.Or(
			trueFirst(x.OnPath, y.OnPath),
			cmp.Compare(x.Kind, y.Kind),
			cmp.Compare(distance(x), distance(y)),
			cmp.Compare(x.To, y.To),
			cmp.Compare(x.From, y.From),
		)
	})
	kept, lines := 0, 0
	for kept < min(len(edges), maxEdges) && lines+len(edges[kept].Channels) <= maxLines {
		lines += len(edges[kept].Channels)
		kept++
	}
	b.graph.Edges, b.graph.LeftOut.Edges = edges[:kept], len(edges)-kept
}

// distance in nodes between the ends of an edge.
func distance(e Edge) int { return max(e.From-e.To, e.To-e.From) }

func trueFirst(x, y bool) int {
	switch {
	case x == y:
		return 0
	case x:
		return -1
	}
	return 1
}

func sortedSet(numbers []int) []int {
	slices.Sort(numbers)
	return slices.Compact(numbers)
}

// version of a node as far as it can be known.
type version struct {
	parsed bundle.Version
	valid  bool
}

func parseVersion(text string) version {
	parsed, err := bundle.ParseVersion(text)
	return version{parsed: parsed, valid: err == nil}
}
