package upgradegraph

import (
	"cmp"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// lane is the column of a channel, in which the edges of the channel are drawn.
type lane struct {
	name   string
	notice Notice
	head   int

	// members are the nodes with an entry in the channel; guests are others at
	// an end of an edge. Both have a dot in the lane.
	members, guests map[int]bool

	edges []Edge

	// lines go straight to the next dot, buses go beside the dots.
	lines []Edge
	buses []bus

	// tracks is how many buses there are beside each other at most.
	tracks int
}

// hop is a step of the path, in the lane where it is drawn.
type hop struct {
	lane, from, to int
}

// layOut gives every edge its place in lanes, and the path too.
func (g Graph) layOut() ([]lane, []hop) {
	lanes := g.newLanes()
	hops := g.hops(lanes)
	for i := range lanes {
		lanes[i].route()
	}
	return lanes, hops
}

// newLanes are the channels and, if there are bundles in none, one more.
func (g Graph) newLanes() []lane {
	lanes := make([]lane, 0, len(g.Channels)+1)
	for _, channel := range g.Channels {
		lanes = append(lanes, newLane(channel))
	}
	for number, node := range g.Nodes {
		for _, channel := range node.Channels {
			lanes[channel].members[number] = true
		}
	}
	for _, edge := range g.Edges {
		for _, channel := range edge.Channels {
			lanes[channel].add(edge)
		}
	}
	rest := newLane(Channel{Name: "none of these", Head: -1})
	for number := range g.Nodes {
		if !slices.ContainsFunc(lanes, func(l lane) bool { return l.stops(number) }) {
			rest.members[number] = true
		}
	}
	if len(rest.members) > 0 {
		lanes = append(lanes, rest)
	}
	return lanes
}

func newLane(channel Channel) lane {
	return lane{
		name:    excerpt.Line(channel.Name, maxName),
		notice:  channel.Notice,
		head:    channel.Head,
		members: map[int]bool{},
		guests:  map[int]bool{},
	}
}

// add an edge with its ends.
func (l *lane) add(e Edge) {
	l.edges = append(l.edges, e)
	for _, end := range []int{e.From, e.To} {
		if !l.members[end] {
			l.guests[end] = true
		}
	}
}

// stops says whether the node has a dot in the lane.
func (l *lane) stops(node int) bool { return l.members[node] || l.guests[node] }

// hops stay in the lane where they are as long as they can. Edges that no
// channel declares are added to a lane.
func (g Graph) hops(lanes []lane) []hop {
	var hops []hop
	last := 0
	for i := 1; i < len(g.Path); i++ {
		from, to := g.Path[i-1], g.Path[i]
		at := slices.IndexFunc(g.Edges, func(e Edge) bool { return e.From == from && e.To == to })
		if at < 0 {
			continue
		}
		switch edge := g.Edges[at]; {
		case slices.Contains(edge.Channels, last):
		case len(edge.Channels) > 0:
			last = edge.Channels[0]
		default:
			if !lanes[last].stops(to) {
				last = slices.IndexFunc(lanes, func(l lane) bool { return l.stops(to) })
			}
			lanes[last].add(edge)
		}
		hops = append(hops, hop{lane: last, from: from, to: to})
	}
	return hops
}

// dots are the nodes that have one in the lane, newest first.
func (l *lane) dots() []int {
	dots := make([]int, 0, len(l.members)+len(l.guests))
	for node := range l.members {
		dots = append(dots, node)
	}
	for node := range l.guests {
		dots = append(dots, node)
	}
	slices.Sort(dots)
	return dots
}

// route decides which edges are lines and which are buses.
func (l *lane) route() {
	above := map[int]int{} // the next dot above each
	dots := l.dots()
	for i := 1; i < len(dots); i++ {
		above[dots[i]] = dots[i-1]
	}
	type ends struct{ from, to int }
	routed := map[ends]bool{}
	buses := map[busKey]*bus{}
	for _, edge := range l.edges {
		// Edges are sorted by kind, so that the first says most.
		if routed[ends{edge.From, edge.To}] {
			continue
		}
		routed[ends{edge.From, edge.To}] = true
		if next, exists := above[edge.From]; exists && next == edge.To {
			l.lines = append(l.lines, edge)
			continue
		}
		key := busKey{to: edge.To, kind: edge.Kind, up: edge.To < edge.From}
		if buses[key] == nil {
			buses[key] = &bus{busKey: key}
		}
		buses[key].from = append(buses[key].from, edge.From)
	}
	slices.SortFunc(l.lines, func(x, y Edge) int { return cmp.Compare(x.From, y.From) })
	for _, b := range buses {
		slices.Sort(b.from)
		l.buses = append(l.buses, *b)
	}
	l.layTracks()
}
