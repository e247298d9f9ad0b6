package upgradegraph

import (
	"bytes"
	"fmt"
	"html"
	"io"
	"slices"
	"strings"
	"unicode/utf8"
)

// WriteSVG writes a picture with one row for each bundle, newest on top, and one
// column for each channel. It stands alone: no script, no font, no reference.
func (g Graph) WriteSVG(w io.Writer) error {
	d := newDrawing(g)
	d.writeHeading()
	d.writeRows()
	d.writePath()
	for i := range d.lanes {
		d.writeLane(i)
	}
	d.writeLabels()
	var out bytes.Buffer
	fmt.Fprintf(&out, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %[1]d %[2]d" width="%[1]d" height="%[2]d" role="img">
<title>%[3]s</title>
<desc>%[4]s</desc>
<style>%[5]s</style>
<rect class="paper" width="%[1]d" height="%[2]d"/>
`, d.width, d.height, xmlText(g.title()), xmlText(strings.Join(g.remarks(), "\n")), style)
	out.Write(d.out.Bytes())
	out.WriteString("</svg>\n")
	_, err := w.Write(out.Bytes())
	return err
}

// drawing is a graph with a place for everything, and the picture as far as it
// is drawn.
type drawing struct {
	Graph

	lanes []lane
	hops  []hop
	rows  []string // the text of each row, after the label

	heading []string

	x      []int // of lanes
	top    int   // of the first row
	labels int   // where labels begin

	width, height int

	out bytes.Buffer
}

// writeHeading writes title, remarks and legend.
func (d *drawing) writeHeading() {
	y := headingHeight
	d.printf("<text class=\"title\" x=\"%d\" y=\"%d\">%s</text>\n", margin, y-8, xmlText(d.title()))
	for _, line := range d.heading {
		y += lineHeight
		d.printf("<text x=\"%d\" y=\"%d\">%s</text>\n", margin, y-8, xmlText(line))
	}
	for _, item := range d.legend() {
		y += lineHeight
		d.printf("<g class=\"l0\" transform=\"translate(%d %d)\">%s<text class=\"minor\" x=\"40\" y=\"4\">%s</text></g>\n",
			margin, y-12, item.sample, item.text)
	}
}

// writeRows writes what belongs to a whole row: its tooltip, and a line that
// leads the eye to the label.
func (d *drawing) writeRows() {
	for number := range d.Nodes {
		y := d.y(number)
		d.printf("<g class=\"row\"><title>%s</title><rect y=\"%d\" width=\"%d\" height=\"%d\"/>",
			xmlText(strings.Join(d.lines(number), "\n")), y-rowHeight/2, d.width, rowHeight)
		first := slices.IndexFunc(d.lanes, func(l lane) bool { return l.stops(number) })
		d.printf("<path d=\"M%d %dH%d\"/></g>\n", d.x[first], y, d.labels-6)
	}
}

// writePath writes the path as if with a marker pen, below everything else.
func (d *drawing) writePath() {
	var line strings.Builder
	for i, h := range d.hops {
		if i > 0 && d.hops[i-1].lane != h.lane {
			fmt.Fprintf(&line, "M%d %dH%d", d.x[d.hops[i-1].lane], d.y(h.from), d.x[h.lane])
		}
		if b := d.lanes[h.lane].busOf(h); b != nil {
			line.WriteString(d.branch(h.lane, *b, h.from))
			line.WriteString(d.trunk(h.lane, *b, h.from))
		} else {
			fmt.Fprintf(&line, "M%d %dV%d", d.x[h.lane], d.y(h.from), d.y(h.to))
		}
	}
	d.writeShape("path", line.String())
	line.Reset()
	for _, number := range d.Path {
		fmt.Fprintf(&line, "M%d %dh%d", d.labels, d.y(number), charWidth*utf8.RuneCountInString(d.Nodes[number].label()))
	}
	d.writeShape("path label", line.String())
}

// writeLabels writes what stands at the end of each row.
func (d *drawing) writeLabels() {
	for number, node := range d.Nodes {
		class := "version"
		if node.Notice.Deprecated {
			class += " old"
		}
		if node.Missing {
			class += " missing"
		}
		if len(d.lanes) > maxLanes {
			d.printf("<text class=\"%s\" x=\"%d\" y=\"%d\">%s</text>", class, margin, d.y(number)+4, xmlText(node.label()))
		}
		d.printf("<text x=\"%d\" y=\"%d\"><tspan class=\"%s\">%s</tspan>", d.labels, d.y(number)+4, class, xmlText(node.label()))
		if d.rows[number] != "" {
			d.printf("<tspan class=\"minor\" dx=\"18\">%s</tspan>", xmlText(d.rows[number]))
		}
		d.printf("</text>\n")
	}
}

func (d *drawing) printf(format string, args ...any) { fmt.Fprintf(&d.out, format, args...) }

func xmlText(text string) string { return html.EscapeString(text) }
