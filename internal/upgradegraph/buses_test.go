package upgradegraph

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// randomGraph has circles, too.
func randomGraph(rng *rand.Rand) Graph {
	p := resolve.Package{Name: "p"}
	for i := range 12 {
		version := fmt.Sprintf("1.%d.0", i)
		p.Bundles = append(p.Bundles, resolve.Bundle{Name: "p.v" + version, Version: version})
	}
	pick := func() string { return p.Bundles[rng.IntN(len(p.Bundles))].Name }
	for i := range 3 {
		c := resolve.Channel{Name: fmt.Sprint(i)}
		for range rng.IntN(10) {
			c.Entries = append(c.Entries, resolve.Entry{Name: pick(), Replaces: pick(), Skips: &resolve.Skips{Bundles: []string{pick(), pick()}}})
		}
		p.Channels = append(p.Channels, c)
	}
	return New(p, View{Path: []string{pick(), pick(), pick()}})
}

func TestEveryEdgeIsDrawnOnceInEachOfItsLanes(t *testing.T) {
	t.Parallel()
	for seed := range uint64(500) {
		g := randomGraph(rand.New(rand.NewPCG(seed, 1)))
		lanes, hops := g.layOut()
		if len(hops) != max(0, len(g.Path)-1) {
			t.Errorf("seed %d: %d steps of %v are drawn", seed, len(hops), g.Path)
		}
		for i := range lanes {
			l := &lanes[i]
			want, got := map[[2]int]int{}, map[[2]int]int{}
			for _, edge := range l.edges {
				want[[2]int{edge.From, edge.To}] = 1
			}
			for _, edge := range l.lines {
				got[[2]int{edge.From, edge.To}]++
			}
			for _, b := range l.buses {
				for _, from := range b.from {
					got[[2]int{from, b.to}]++
				}
			}
			if len(want) != len(got) {
				t.Errorf("seed %d, lane %d: %d edges are drawn, want %d", seed, i, len(got), len(want))
			}
			for ends := range want {
				if got[ends] != 1 || !l.stops(ends[0]) || !l.stops(ends[1]) {
					t.Errorf("seed %d, lane %d: %v is drawn %d times", seed, i, ends, got[ends])
				}
			}
		}
	}
}

func TestNothingRunsIntoSomethingElse(t *testing.T) {
	t.Parallel()
	shared := false
	for seed := range uint64(500) {
		lanes, _ := randomGraph(rand.New(rand.NewPCG(seed, 2))).layOut()
		for i := range lanes {
			l := &lanes[i]
			for _, line := range l.lines {
				for node := min(line.From, line.To) + 1; node < max(line.From, line.To); node++ {
					if l.stops(node) {
						t.Errorf("seed %d, lane %d: the line from %d to %d runs through %d", seed, i, line.From, line.To, node)
					}
				}
			}
			for j, b := range l.buses {
				if b.track >= l.tracks {
					t.Errorf("seed %d, lane %d: track %d of %d", seed, i, b.track, l.tracks)
				}
				for _, other := range l.buses[:j] {
					if b.track == other.track && b.track < maxTracks-1 && b.span().meets(other.span()) {
						t.Errorf("seed %d, lane %d: %+v and %+v", seed, i, b, other)
					}
					shared = shared || b.track == other.track
				}
			}
		}
	}
	if !shared {
		t.Error("no track is used twice: the test shows nothing")
	}
}
