package upgradegraph

import (
	"cmp"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// addRange notes the skipRange of an entry.
func (b *builder) addRange(node *Node, text string, channel int) {
	contains, known := b.ranges[text]
	if !known {
		contains, _ = bundle.ParseVersionRange(text)
		b.ranges[text] = contains
	}
	at := slices.IndexFunc(node.Ranges, func(r SkipRange) bool { return r.Text == text })
	if at < 0 {
		at = len(node.Ranges)
		node.Ranges = append(node.Ranges, SkipRange{Text: text, Invalid: contains == nil})
	}
	node.Ranges[at].Channels = append(node.Ranges[at].Channels, channel)
}

// reach of a node: the versions that a valid skipRange of it holds.
type reach struct {
	to       int
	contains semver.Range
	channels []int
}

// reaches sorts the ranges of each node, and returns the valid ones, newest node
// first.
func (b *builder) reaches() []reach {
	var found []reach
	for number := range b.graph.Nodes {
		node := &b.graph.Nodes[number]
		slices.SortFunc(node.Ranges, func(x, y SkipRange) int { return cmp.Compare(x.Text, y.Text) })
		for i, r := range node.Ranges {
			node.Ranges[i].Channels = sortedSet(r.Channels)
			if !r.Invalid {
				found = append(found, reach{to: number, contains: b.ranges[r.Text], channels: node.Ranges[i].Channels})
			}
		}
	}
	return found
}

// addRangeEdges adds those edges for ranges that are drawn; see [InRange].
func (b *builder) addRangeEdges(reaches []reach) {
	named := map[int]bool{}
	for u := range b.edges {
		named[u.from] = true
	}
	for from := range b.graph.Nodes {
		newest := -1
		for _, r := range reaches {
			if named[from] || r.to >= from || newest >= 0 && r.to != newest {
				break
			}
			if b.addRangeEdge(from, r) {
				newest = r.to
			}
		}
	}
}

// addRangeEdge if the range has the version; it returns whether it has.
func (b *builder) addRangeEdge(from int, r reach) bool {
	version := b.versions[from]
	if !version.valid || !r.contains(version.parsed.Version) {
		return false
	}
	edge := b.edge(upgrade{from: from, to: r.to, kind: InRange})
	edge.Channels = append(edge.Channels, r.channels...)
	return true
}
