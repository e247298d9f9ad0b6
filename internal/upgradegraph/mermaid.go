package upgradegraph

import (
	"bytes"
	"fmt"
	"io"
	"strings"
	"unicode"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// WriteMermaid writes a flowchart in the syntax of Mermaid.
func (g Graph) WriteMermaid(w io.Writer) error {
	var out bytes.Buffer
	fmt.Fprintf(&out, "---\ntitle: \"%s\"\n---\nflowchart BT\n", mermaidTitle(g.title()))
	for number := range g.Nodes {
		g.mermaidNode(&out, number)
	}
	for number, channel := range g.Channels {
		lines := []string{excerpt.Line(channel.Name, maxName)}
		if channel.Notice.Deprecated {
			lines = append(lines, channel.Notice.String())
		}
		fmt.Fprintf(&out, "  c%d([%s]):::channel\n", number, mermaidLabel(lines))
	}
	for _, edge := range g.Edges {
		fmt.Fprintf(&out, "  n%d %s n%d\n", edge.From, g.mermaidArrow(edge), edge.To)
	}
	for number, channel := range g.Channels {
		if channel.Head >= 0 {
			fmt.Fprintf(&out, "  n%d --- c%d\n", channel.Head, number)
		}
	}
	if lines := g.remarks(); len(lines) > 0 {
		fmt.Fprintf(&out, "  r[%s]:::channel\n", mermaidLabel(lines))
	}
	out.WriteString(`  classDef channel fill:none,stroke:none
  classDef deprecated fill:#ddd,stroke:#999,color:#666
  classDef missing fill:none,stroke:#999,color:#888,stroke-dasharray:4
  classDef path stroke:#d1006c,stroke-width:3px
`)
	g.mermaidPath(&out)
	_, err := w.Write(out.Bytes())
	return err
}

func (g Graph) mermaidNode(out *bytes.Buffer, number int) {
	node := g.Nodes[number]
	fmt.Fprintf(out, "  n%d[%s]", number, mermaidLabel(g.lines(number)))
	switch {
	case node.Missing:
		out.WriteString(":::missing")
	case node.Notice.Deprecated:
		out.WriteString(":::deprecated")
	}
	out.WriteString("\n")
}

// mermaidArrow is thick on the path, and dotted for what is no replaces.
func (g Graph) mermaidArrow(e Edge) string {
	arrow := "-->"
	switch {
	case e.OnPath:
		arrow = "==>"
	case e.Kind != Replaces:
		arrow = "-.->"
	}
	if text := g.edgeText(e); text != "" {
		arrow += "|" + mermaidLabel([]string{text}) + "|"
	}
	return arrow
}

// mermaidPath colours the path. Edges are numbered in the order in which they
// are written.
func (g Graph) mermaidPath(out *bytes.Buffer) {
	var nodes, edges []string
	for _, node := range g.Path {
		nodes = append(nodes, fmt.Sprintf("n%d", node))
	}
	for number, edge := range g.Edges {
		if edge.OnPath {
			edges = append(edges, fmt.Sprint(number))
		}
	}
	if len(nodes) > 0 {
		fmt.Fprintf(out, "  class %s path\n", strings.Join(nodes, ","))
	}
	if len(edges) > 0 {
		fmt.Fprintf(out, "  linkStyle %s stroke:#d1006c,stroke-width:3px\n", strings.Join(edges, ","))
	}
}

func mermaidLabel(lines []string) string {
	escaped := make([]string, 0, len(lines))
	for _, line := range lines {
		escaped = append(escaped, mermaidText(line))
	}
	return `"` + strings.Join(escaped, "<br>") + `"`
}

// mermaidText writes every ASCII character as a code that could mean anything
// to Mermaid, to the HTML that it makes, or to the Markdown that it reads.
func mermaidText(text string) string {
	var out strings.Builder
	for _, r := range text {
		if meansNothing(r) {
			out.WriteRune(r)
		} else {
			fmt.Fprintf(&out, "#%d;", r)
		}
	}
	return out.String()
}

// mermaidTitle is without such characters: titles have no codes for them.
func mermaidTitle(text string) string {
	return strings.Map(func(r rune) rune {
		if meansNothing(r) {
			return r
		}
		return unicode.ReplacementChar
	}, text)
}

func meansNothing(r rune) bool {
	return r > unicode.MaxASCII || r >= '0' && r <= '9' || r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' ||
		strings.ContainsRune(" .,:/_=~()+-", r)
}
