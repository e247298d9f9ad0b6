package upgradegraph

import "slices"

// addPath marks the edges that the path takes, and adds those that it lacks.
func (b *builder) addPath(reaches []reach, names []string) {
	for _, name := range names {
		to, drawn := b.numbers[name]
		if !drawn || slices.Contains(b.graph.Path, to) {
			continue
		}
		if last := len(b.graph.Path) - 1; last >= 0 {
			b.addHop(reaches, b.graph.Path[last], to)
		}
		b.graph.Path = append(b.graph.Path, to)
	}
}

func (b *builder) addHop(reaches []reach, from, to int) {
	replaced := b.markOnPath(upgrade{from: from, to: to, kind: Replaces})
	skipped := b.markOnPath(upgrade{from: from, to: to, kind: Skips})
	if replaced || skipped {
		return
	}
	for _, r := range reaches {
		if r.to == to {
			b.addRangeEdge(from, r)
		}
	}
	if !b.markOnPath(upgrade{from: from, to: to, kind: InRange}) {
		b.edge(upgrade{from: from, to: to, kind: Undeclared}).OnPath = true
	}
}

// markOnPath returns whether there is such an edge.
func (b *builder) markOnPath(u upgrade) bool {
	edge, exists := b.edges[u]
	if exists {
		edge.OnPath = true
	}
	return exists
}
