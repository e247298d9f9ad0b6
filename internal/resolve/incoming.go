package resolve

import "slices"

// incoming are the edges by the bundle that they lead to. They are asked for so
// seldom that nothing of them is kept.
type incoming struct {
	edges   *edges
	nodes   []node
	numbers map[string][]int // of bundles, by name

	// names and ranges that declare the upgrade to a bundle, by its number; a range
	// is one of edges.byRange.
	names  [][]string
	ranges [][]int
}

// into turns the edges of the selected channels around.
func (e *edges) into(selected selection, nodes []node) *incoming {
	in := &incoming{
		edges:   e,
		nodes:   nodes,
		numbers: make(map[string][]int, len(nodes)),
		names:   make([][]string, len(nodes)),
		ranges:  make([][]int, len(nodes)),
	}
	for i := range nodes {
		in.numbers[nodes[i].name] = append(in.numbers[nodes[i].name], i)
	}
	for name, edges := range e.byName {
		for _, edge := range edges {
			if selected[edge.channel] {
				in.names[edge.to] = appendOther(in.names[edge.to], name)
			}
		}
	}
	for i := range e.byRange {
		for _, edge := range e.byRange[i].edges {
			if selected[edge.channel] {
				in.ranges[edge.to] = appendOther(in.ranges[edge.to], i)
			}
		}
	}
	return in
}

// appendOther leaves out what the list ends with: several channels declare the
// same.
func appendOther[T comparable](to []T, item T) []T {
	if len(to) > 0 && to[len(to)-1] == item {
		return to
	}
	return append(to, item)
}

// each visits the bundles that have an upgrade to another one, some of them more
// than once.
func (in *incoming) each(to int, visit func(from int)) {
	for _, name := range in.names[to] {
		for _, number := range in.numbers[name] {
			visit(number)
		}
	}
	for i := range in.nodes {
		n := &in.nodes[i]
		if n.versionErr == nil && slices.ContainsFunc(in.ranges[to], func(number int) bool {
			return in.edges.byRange[number].contains(n.parsed.Version)
		}) {
			visit(i)
		}
	}
}
