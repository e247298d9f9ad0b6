package catalogcheck

import (
	"maps"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// graph has the entries of one channel, and for each of them the entries that it
// replaces or skips.
type graph struct {
	names []string
	older [][]int
}

func newGraph(ch *channel) graph {
	names := slices.Sorted(maps.Keys(ch.numbers))
	numbers := make(map[string]int, len(names))
	for i, name := range names {
		numbers[name] = i
	}
	g := graph{names: names, older: make([][]int, len(names))}
	for _, e := range ch.entries {
		from, ok := numbers[e.Name]
		if !ok {
			continue
		}
		for _, name := range append([]string{e.Replaces}, e.Skips...) {
			// That an entry leads to itself is reported elsewhere.
			if to, ok := numbers[name]; ok && to != from {
				g.older[from] = append(g.older[from], to)
			}
		}
	}
	for i, older := range g.older {
		slices.Sort(older)
		g.older[i] = slices.Compact(older)
	}
	return g
}

// heads returns the entries that no other one replaces or skips, sorted.
func (g graph) heads() []string {
	isOlder := make([]bool, len(g.names))
	for _, older := range g.older {
		for _, i := range older {
			isOlder[i] = true
		}
	}
	var heads []string
	for i, name := range g.names {
		if !isOlder[i] {
			heads = append(heads, name)
		}
	}
	return heads
}

// Where the search for cycles has been.
type visit uint8

const (
	unseen visit = iota
	// onPath entries lead to the one that is looked at.
	onPath
	done
)

// walk is a search for cycles, depth first. It does not recurse: a path is as
// long as hostile content makes it.
type walk struct {
	graph

	visits []visit
	// tried counts, by entry, the older ones that have been looked at.
	tried []int
	path  []int
	// depth is the place of an entry on the path.
	depth []int
}

// cycles calls found with the entries of a cycle, for each entry and older entry
// that close one: at least once if there are cycles.
func (g graph) cycles(found func(entries []int)) {
	n := len(g.names)
	w := walk{graph: g, visits: make([]visit, n), tried: make([]int, n), depth: make([]int, n)}
	for start := range g.names {
		if w.visits[start] == unseen {
			w.enter(start)
			w.run(found)
		}
	}
}

func (w *walk) enter(entry int) {
	w.visits[entry], w.depth[entry] = onPath, len(w.path)
	w.path = append(w.path, entry)
}

// run goes on until the path is empty.
func (w *walk) run(found func(entries []int)) {
	for len(w.path) > 0 {
		at := w.path[len(w.path)-1]
		if w.tried[at] == len(w.older[at]) {
			w.visits[at] = done
			w.path = w.path[:len(w.path)-1]
			continue
		}
		to := w.older[at][w.tried[at]]
		w.tried[at]++
		switch w.visits[to] {
		case unseen:
			w.enter(to)
		case onPath:
			found(w.path[w.depth[to]:])
		case done:
		}
	}
}

// circle returns the names of entries each of which replaces or skips the next
// one, and the last one the first.
func (g graph) circle(entries []int) string {
	var names []string
	for i, entry := range entries {
		if i == maxListed {
			names = append(names, "...")
			break
		}
		names = append(names, excerpt.Quote(g.names[entry]))
	}
	return strings.Join(append(names, excerpt.Quote(g.names[entries[0]])), " -> ")
}
