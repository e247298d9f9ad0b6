package resolve

import (
	"cmp"
	"fmt"
	"slices"

	"github.com/blang/semver/v4"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// edges answers which bundles follow an installed one, and which are in a
// channel, without going over all channel entries. Bundles and channels are
// numbered.
type edges struct {
	channels map[string]int
	members  [][]int // by channel

	byName  map[string][]edge // by the name of the bundle that is upgraded
	byRange []rangeEdges      // one for each different text
	faults  map[int][]fault   // by bundle
}

// edge is the upgrade to a bundle, declared in a channel.
type edge struct {
	channel, to int
}

type rangeEdges struct {
	contains semver.Range
	edges    []edge
}

// fault is a skipRange that is ignored because it cannot be parsed.
type fault struct {
	channel   string
	skipRange string
	err       error
}

func (f fault) String() string {
	const shown = 128
	return fmt.Sprintf("skipRange %.*q in channel %q is invalid: %v", shown, f.skipRange, f.channel, f.err)
}

func newEdges(nodes []node, channels []Channel) edges {
	e := edges{
		channels: make(map[string]int, len(channels)),
		byName:   make(map[string][]edge, len(nodes)),
		faults:   map[int][]fault{},
	}
	byName := make(map[string][]int, len(nodes))
	for i, n := range nodes {
		byName[n.name] = append(byName[n.name], i)
	}
	ranges := newRangeIndex()
	for _, channel := range channels {
		number := e.channel(channel.Name)
		for _, entry := range channel.Entries {
			for _, to := range byName[entry.Name] {
				added := edge{channel: number, to: to}
				e.members[number] = append(e.members[number], to)
				e.addNamed(entry, added)
				if err := ranges.add(entry.SkipRange(), added); err != nil {
					e.faults[to] = append(e.faults[to], fault{channel: channel.Name, skipRange: entry.SkipRange(), err: err})
				}
			}
		}
	}
	e.byRange = ranges.list
	for _, faults := range e.faults {
		slices.SortFunc(faults, func(a, b fault) int {
			return cmp.Or(cmp.Compare(a.channel, b.channel), cmp.Compare(a.skipRange, b.skipRange))
		})
	}
	return e
}

func (e *edges) channel(name string) int {
	number, known := e.channels[name]
	if !known {
		number = len(e.members)
		e.channels[name] = number
		e.members = append(e.members, nil)
	}
	return number
}

// addNamed leaves empty names out: they would match an installed bundle whose
// name is not known.
func (e *edges) addNamed(entry Entry, added edge) {
	if entry.Replaces != "" {
		e.byName[entry.Replaces] = append(e.byName[entry.Replaces], added)
	}
	for _, name := range entry.Skipped() {
		if name != "" {
			e.byName[name] = append(e.byName[name], added)
		}
	}
}

// selection is a set of channels, by number.
type selection []bool

// selectChannels treats no names as every channel. Unknown names select
// nothing.
func (e *edges) selectChannels(names []string) selection {
	selected := make(selection, len(e.members))
	if len(names) == 0 {
		for i := range selected {
			selected[i] = true
		}
	}
	for _, name := range names {
		if number, known := e.channels[name]; known {
			selected[number] = true
		}
	}
	return selected
}

// in marks those of size bundles that have an entry in a selected channel.
func (e *edges) in(selected selection, size int) []bool {
	found := make([]bool, size)
	for channel, members := range e.members {
		if !selected[channel] {
			continue
		}
		for _, member := range members {
			found[member] = true
		}
	}
	return found
}

// from marks those of size bundles that a selected channel declares an upgrade
// of the installed bundle.
func (e *edges) from(name string, version bundle.Version, selected selection, size int) []bool {
	found := make([]bool, size)
	mark := func(edges []edge) {
		for _, edge := range edges {
			if selected[edge.channel] {
				found[edge.to] = true
			}
		}
	}
	mark(e.byName[name])
	for _, r := range e.byRange {
		if r.contains(version.Version) {
			mark(r.edges)
		}
	}
	return found
}

// firstFault among a bundle's skipRanges in the selected channels.
func (e *edges) firstFault(number int, selected selection) (fault, bool) {
	for _, fault := range e.faults[number] {
		if selected[e.channels[fault.channel]] {
			return fault, true
		}
	}
	return fault{}, false
}

// rangeIndex parses every different skipRange once.
type rangeIndex struct {
	list    []rangeEdges
	numbers map[string]int
	invalid map[string]error
}

func newRangeIndex() *rangeIndex {
	return &rangeIndex{numbers: map[string]int{}, invalid: map[string]error{}}
}

func (r *rangeIndex) add(text string, added edge) error {
	if text == "" {
		return nil
	}
	if err := r.invalid[text]; err != nil {
		return err
	}
	number, known := r.numbers[text]
	if !known {
		contains, err := parseSkipRange(text)
		if err != nil {
			r.invalid[text] = err
			return err
		}
		number = len(r.list)
		r.numbers[text] = number
		r.list = append(r.list, rangeEdges{contains: contains})
	}
	r.list[number].edges = append(r.list[number].edges, added)
	return nil
}
