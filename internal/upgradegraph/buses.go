package upgradegraph

import (
	"cmp"
	"slices"
)

// maxTracks bounds the width of a lane. Buses beyond it share the last track.
const maxTracks = 8

// bus is what upgrades of one kind to one node have in common: a line beside the
// dots, on a track, that each of them joins.
type bus struct {
	busKey

	from  []int // upper first
	track int
}

type busKey struct {
	to   int
	kind Kind
	up   bool
}

// span is from one node down to another.
type span struct{ top, bottom int }

// span where the bus takes its track.
func (b bus) span() span {
	return span{top: min(b.to, b.from[0]), bottom: max(b.to, b.from[len(b.from)-1])}
}

func (s span) length() int { return s.bottom - s.top }

// meets says whether two buses would run into each other on one track.
func (s span) meets(other span) bool { return s.top < other.bottom && other.top < s.bottom }

// layTracks puts short buses next to the dots, and none onto another one.
func (l *lane) layTracks() {
	slices.SortFunc(l.buses, func(x, y bus) int {
		return cmp.Or(
			cmp.Compare(x.span().length(), y.span().length()),
			cmp.Compare(x.to, y.to),
			cmp.Compare(x.kind, y.kind),
			trueFirst(x.up, y.up),
		)
	})
	var tracks [][]span
	for i := range l.buses {
		b := &l.buses[i]
		for b.track < len(tracks) && b.track < maxTracks-1 && slices.ContainsFunc(tracks[b.track], b.span().meets) {
			b.track++
		}
		if b.track == len(tracks) {
			tracks = append(tracks, nil)
		}
		tracks[b.track] = append(tracks[b.track], b.span())
	}
	l.tracks = len(tracks)
}

// busOf is the bus that takes a hop, nil if it is a line.
func (l *lane) busOf(h hop) *bus {
	for i := range l.buses {
		if b := &l.buses[i]; b.to == h.to && slices.Contains(b.from, h.from) {
			return b
		}
	}
	return nil
}
