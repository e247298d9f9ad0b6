package upgradegraph

import (
	"fmt"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// laneColors is how many colours there are in the style.
const laneColors = 7

// writeLane writes a column: head, edges, dots.
func (d *drawing) writeLane(number int) {
	l, x := &d.lanes[number], d.x[number]
	class := "head"
	if l.notice.Deprecated {
		class = "old"
	}
	d.printf("<g class=\"l%d\"><title>%s</title>\n", number%laneColors, xmlText(strings.TrimSpace(l.name+"\n"+l.notice.String())))
	d.printf("<text class=\"%s\" transform=\"translate(%d %d) rotate(-45)\">%s</text>\n", class, x, d.top-rowHeight/2-6, xmlText(excerpt.Line(l.name, maxHeading)))
	d.writeLines(number)
	for _, b := range l.buses {
		d.writeBus(number, b)
	}
	d.writeTips(number)
	d.writeDots(number)
	d.printf("</g>\n")
}

func (d *drawing) writeLines(number int) {
	for _, look := range []string{"line", "dashed", "dotted"} {
		var lines strings.Builder
		for _, edge := range d.lanes[number].lines {
			if edge.Kind.look() == look {
				fmt.Fprintf(&lines, "M%d %dV%d", d.x[number], d.y(edge.From), d.y(edge.To))
			}
		}
		d.writeShape(look, lines.String())
	}
}

// look of an edge: its class in the style.
func (k Kind) look() string {
	switch k {
	case Replaces:
		return "line"
	case Undeclared:
		return "dotted"
	case Skips, InRange:
	}
	return "dashed"
}

func (d *drawing) writeBus(number int, b bus) {
	var line strings.Builder
	farthest := b.from[len(b.from)-1]
	if !b.up {
		farthest = b.from[0]
	}
	for _, from := range b.from {
		line.WriteString(d.branch(number, b, from))
	}
	line.WriteString(d.trunk(number, b, farthest))
	text := fmt.Sprintf("%s: %s from %s", d.Nodes[b.to].label(), b.kind, d.labelsOf(b.from))
	d.printf("<path class=\"%s\" d=\"%s\"><title>%s</title></path>\n", b.kind.look(), line.String(), xmlText(text))
}

// branch of a bus: from a dot onto the track.
func (d *drawing) branch(number int, b bus, from int) string {
	width := d.track(number, b) - d.x[number]
	return fmt.Sprintf("M%d %dq%d 0 %d %d", d.x[number], d.y(from), width, width, b.turn())
}

// trunk of a bus: along the track to its node.
func (d *drawing) trunk(number int, b bus, from int) string {
	y, track := d.y(b.to), d.track(number, b)
	return fmt.Sprintf("M%d %dV%dq0 %d %d %d", track, d.y(from)+b.turn(), y-b.turn(),
		b.turn(), d.side(number, b.to)-track, b.turn())
}

// writeTips writes where buses arrive.
func (d *drawing) writeTips(number int) {
	var tips strings.Builder
	for _, b := range d.lanes[number].buses {
		fmt.Fprintf(&tips, "M%d %dl-5 4 5 4", d.side(number, b.to)+5, d.y(b.to)-4)
	}
	d.writeShape("tip", tips.String())
}

// side of a node, where buses arrive.
func (d *drawing) side(number, node int) int {
	if node == d.lanes[number].head {
		return d.x[number] + ringSize/2 + 1
	}
	return d.x[number] + dotSize/2 + 1
}

// turn is how far the track is from a dot that it leads away from, downwards.
func (b bus) turn() int {
	if b.up {
		return -rowHeight/2 + 1
	}
	return rowHeight/2 - 1
}

// writeDots writes the dots of a lane, all of one look with one shape.
func (d *drawing) writeDots(number int) {
	l := &d.lanes[number]
	var dots, old, hollow, rings strings.Builder
	for _, node := range l.dots() {
		at := fmt.Sprintf("M%d %dh0", d.x[number], d.y(node))
		switch {
		case d.Nodes[node].Missing || !l.members[node]:
			hollow.WriteString(at)
		case d.Nodes[node].Notice.Deprecated:
			old.WriteString(at)
		default:
			dots.WriteString(at)
		}
		if node == l.head {
			rings.WriteString(at)
		}
	}
	d.writeShape("dot ring", rings.String())
	d.writeShape("dot gap", rings.String())
	d.writeShape("dot", dots.String())
	d.writeShape("dot old", old.String())
	d.writeShape("dot", hollow.String())
	d.writeShape("dot hole", hollow.String())
}

func (d *drawing) writeShape(class, shape string) {
	if shape != "" {
		d.printf("<path class=\"%s\" d=\"%s\"/>\n", class, shape)
	}
}
