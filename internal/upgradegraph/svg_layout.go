package upgradegraph

import (
	"slices"
	"strings"
	"unicode/utf8"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Sizes in pixels, and in bytes for texts.
const (
	margin        = 24
	headingHeight = 44
	lineHeight    = 22
	rowHeight     = 26
	laneWidth     = 30
	firstTrack    = 17
	trackWidth    = 6
	dotSize       = 11
	ringSize      = 19
	charWidth     = 8 // of a wide one; there is no way to measure text here
	maxHeading    = 32
	maxRow        = 140
	// A picture with more lanes has labels on both sides.
	maxLanes = 20
)

func newDrawing(g Graph) *drawing {
	d := &drawing{Graph: g}
	d.lanes, d.hops = g.layOut()
	x := margin + dotSize
	if len(d.lanes) > maxLanes {
		for _, node := range g.Nodes {
			x = max(x, margin+textWidth(node.label())+2*dotSize)
		}
	}
	slant := 0 // how far the name of a lane reaches to the right
	for i := range d.lanes {
		d.x = append(d.x, x)
		length := min(utf8.RuneCountInString(d.lanes[i].name), maxHeading+1) * charWidth * 7 / 10
		slant = max(slant, length)
		d.width = max(d.width, x+length+margin)
		x += laneWidth
		if d.lanes[i].tracks > 0 {
			x += firstTrack - trackWidth + d.lanes[i].tracks*trackWidth
		}
	}
	d.labels = x
	for number, node := range g.Nodes {
		row := g.row(number)
		d.rows = append(d.rows, row)
		d.width = max(d.width, d.labels+textWidth(node.label()+"  "+row)+margin)
	}
	d.width = max(d.width, margin+textWidth(g.title())*3/2+margin)
	d.heading = append(g.remarks(), g.channelRemarks()...)
	for _, line := range d.heading {
		d.width = max(d.width, margin+textWidth(line)+margin)
	}
	for _, item := range d.legend() {
		d.width = max(d.width, margin+40+textWidth(item.text)+margin)
	}
	d.top = headingHeight + (len(d.heading)+len(d.legend()))*lineHeight + slant + margin + rowHeight/2
	d.height = d.y(len(g.Nodes)) + margin
	return d
}

// y of a node.
func (d *drawing) y(node int) int { return d.top + node*rowHeight }

// track is where a bus runs.
func (d *drawing) track(number int, b bus) int { return d.x[number] + firstTrack + b.track*trackWidth }

// row is what a row says after the label.
func (g Graph) row(number int) string {
	var parts []string
	if name := g.name(g.Nodes[number]); name != "" {
		parts = append(parts, name)
	}
	return excerpt.Line(strings.Join(append(parts, g.notes(number)...), " · "), maxRow)
}

// channelRemarks are said here because columns only have room for a name.
func (g Graph) channelRemarks() []string {
	var remarks []string
	for _, channel := range g.Channels {
		if channel.Notice.Deprecated && len(remarks) < maxListed {
			remarks = append(remarks, excerpt.Line(channel.Name, maxHeading)+": "+channel.Notice.String())
		}
	}
	return remarks
}

func textWidth(text string) int {
	width := 0
	for _, r := range text {
		width += charWidth
		if r > 0x2e80 {
			width += charWidth
		}
	}
	return width
}

// legendItem explains one look, with a sample of 32 pixels around y 0.
type legendItem struct {
	sample, text string
}

// legend has the looks that occur.
func (d *drawing) legend() []legendItem {
	var items []legendItem
	add := func(occurs bool, sample, text string) {
		if occurs {
			items = append(items, legendItem{sample: sample, text: text})
		}
	}
	kind := func(kinds ...Kind) bool {
		return slices.ContainsFunc(d.Edges, func(e Edge) bool { return slices.Contains(kinds, e.Kind) })
	}
	node := func(is func(Node) bool) bool { return slices.ContainsFunc(d.Nodes, is) }
	column := func(is func(lane) bool) bool { return slices.ContainsFunc(d.lanes, is) }
	add(len(d.Path) > 0, `<path class="path" d="M4 0H28"/>`, "the upgrades to expect")
	add(kind(Replaces), `<path class="line" d="M2 0H30"/>`, "replaces: upgrades go up, to the newer version")
	add(kind(Skips, InRange), `<path class="dashed" d="M2 0H30"/>`, "skips; or skipRange, where nothing else leads on")
	add(kind(Undeclared), `<path class="dotted" d="M2 0H30"/>`, "declared by no channel")
	add(column(func(l lane) bool { return l.head >= 0 }),
		`<path class="dot ring" d="M16 0h0"/><path class="dot gap" d="M16 0h0"/><path class="dot" d="M16 0h0"/>`, "head of the channel")
	add(node(func(n Node) bool { return n.Notice.Deprecated }), `<path class="dot old" d="M16 0h0"/>`, "deprecated")
	add(node(func(n Node) bool { return n.Missing }) || column(func(l lane) bool { return len(l.guests) > 0 }),
		`<path class="dot" d="M16 0h0"/><path class="dot hole" d="M16 0h0"/>`, "not in the channel, or not in the catalog")
	return items
}
