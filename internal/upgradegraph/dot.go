package upgradegraph

import (
	"bytes"
	"fmt"
	"io"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// WriteDOT writes a graph in the language of Graphviz.
func (g Graph) WriteDOT(w io.Writer) error {
	var out bytes.Buffer
	heading := append([]string{g.title()}, g.remarks()...)
	fmt.Fprintf(&out, `digraph upgrades {
  rankdir=BT
  label=%s
  labelloc=t
  fontname="sans-serif"
  node [shape=box, style=rounded, fontname="sans-serif"]
  edge [fontname="sans-serif", fontsize=10]
`, dotText(heading))
	for number := range g.Nodes {
		fmt.Fprintf(&out, "  n%d [%s]\n", number, g.dotNode(number))
	}
	for number, channel := range g.Channels {
		lines := []string{excerpt.Line(channel.Name, maxName)}
		if channel.Notice.Deprecated {
			lines = append(lines, channel.Notice.String())
		}
		fmt.Fprintf(&out, "  c%d [shape=plain, label=%s]\n", number, dotText(lines))
	}
	for _, edge := range g.Edges {
		fmt.Fprintf(&out, "  n%d -> n%d [%s]\n", edge.From, edge.To, g.dotEdge(edge))
	}
	for number, channel := range g.Channels {
		if channel.Head >= 0 {
			fmt.Fprintf(&out, "  n%d -> c%d [dir=none, color=gray]\n", channel.Head, number)
		}
	}
	out.WriteString("}\n")
	_, err := w.Write(out.Bytes())
	return err
}

func (g Graph) dotNode(number int) string {
	node := g.Nodes[number]
	attributes := "label=" + dotText(g.lines(number))
	switch {
	case node.Missing:
		attributes += `, style="rounded,dashed", color=gray, fontcolor=gray40`
	case node.Notice.Deprecated:
		attributes += `, style="rounded,filled", color=gray, fillcolor=gray90, fontcolor=gray40`
	}
	if g.onPath(number) {
		attributes += `, color="#d1006c", penwidth=3`
	}
	return attributes
}

func (g Graph) dotEdge(e Edge) string {
	attributes := "label=" + dotText([]string{g.edgeText(e)})
	if e.Kind != Replaces {
		attributes += ", style=dashed"
	}
	if e.OnPath {
		attributes += `, color="#d1006c", penwidth=3`
	}
	return attributes
}

var dotEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, `&`, `&amp;`)

// dotText is a quoted string of several lines.
func dotText(lines []string) string {
	escaped := make([]string, 0, len(lines))
	for _, line := range lines {
		escaped = append(escaped, dotEscapes.Replace(line))
	}
	return `"` + strings.Join(escaped, `\n`) + `"`
}
