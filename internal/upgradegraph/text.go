package upgradegraph

import (
	"fmt"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Bounds of the texts in a drawing, in bytes and in items of a list.
const (
	maxName    = 80
	maxMessage = 200
	maxListed  = 5
)

// listed joins the first names of a list.
func listed(names []string) string {
	if more := len(names) - maxListed; more > 0 {
		return fmt.Sprintf("%s and %d more", strings.Join(names[:maxListed], ", "), more)
	}
	return strings.Join(names, ", ")
}

// label is what a bundle is called in a drawing: its version, or else its name.
func (n Node) label() string {
	if n.Version == "" {
		return excerpt.Line(n.Name, maxName)
	}
	return excerpt.Line(n.Version, maxName)
}

// name of a bundle where the label does not tell it.
func (g Graph) name(n Node) string {
	if n.Version == "" || n.Name == g.Package+".v"+n.Version || n.Name == g.Package+"."+n.Version {
		return ""
	}
	return excerpt.Line(n.Name, maxName)
}

func (g Graph) labelsOf(nodes []int) string {
	labels := make([]string, len(nodes))
	for i, node := range nodes {
		labels[i] = g.Nodes[node].label()
	}
	return listed(labels)
}

func (g Graph) channelNames(channels []int) string {
	var names []string
	for _, channel := range channels {
		names = append(names, excerpt.Line(g.Channels[channel].Name, maxName))
	}
	return listed(names)
}

// notes are what there is to say of a node besides its name, its channels and its
// edges.
func (g Graph) notes(number int) []string {
	var notes []string
	node := g.Nodes[number]
	if len(g.Path) > 0 && g.Path[0] == number {
		notes = append(notes, "installed")
	}
	switch {
	case node.Missing:
		notes = append(notes, "not in the catalog")
	case len(node.Channels) > 0:
	case node.Elsewhere:
		notes = append(notes, "in other channels")
	default:
		notes = append(notes, "in no channel")
	}
	for _, r := range node.Ranges[:min(len(node.Ranges), maxListed)] {
		notes = append(notes, g.rangeNote(node, r))
	}
	if more := len(node.Ranges) - maxListed; more > 0 {
		notes = append(notes, fmt.Sprintf("and from %d more ranges", more))
	}
	if node.Notice.Deprecated {
		notes = append(notes, node.Notice.String())
	}
	return notes
}

func (g Graph) rangeNote(node Node, r SkipRange) string {
	text := "from " + excerpt.Line(r.Text, maxName)
	if r.Invalid {
		text = "without effect: skipRange " + excerpt.Line(r.Text, maxName)
	}
	if !slices.Equal(r.Channels, node.Channels) {
		text += " in " + g.channelNames(r.Channels)
	}
	return text
}

// String is empty for what is not deprecated.
func (n Notice) String() string {
	switch {
	case !n.Deprecated:
		return ""
	case n.Message == "":
		return "deprecated"
	}
	return "deprecated: " + excerpt.Line(n.Message, maxMessage)
}

// remarks on the graph as a whole, after its title.
func (g Graph) remarks() []string {
	var lines []string
	if g.Notice.Deprecated {
		lines = append(lines, g.Notice.String())
	}
	if g.LeftOut != (LeftOut{}) {
		lines = append(lines, fmt.Sprintf("not drawn: %d older bundles, %d channels, %d edges",
			g.LeftOut.Nodes, g.LeftOut.Channels, g.LeftOut.Edges))
	}
	return lines
}

// title is the package, with the upgrades of what is installed.
func (g Graph) title() string {
	title := "Upgrades of " + excerpt.Line(g.Package, maxName)
	switch len(g.Path) {
	case 0:
		return title
	case 1:
		return title + ": " + g.labelsOf(g.Path) + " stays"
	}
	var labels []string
	for _, node := range g.Path {
		labels = append(labels, g.Nodes[node].label())
	}
	// The end of a long path says more than its middle.
	if between := len(labels) - 2*maxListed; between > 0 {
		labels = slices.Replace(labels, maxListed, len(labels)-maxListed, fmt.Sprintf("(%d more)", between))
	}
	return title + ": " + strings.Join(labels, " → ")
}

// edgeText says what an edge is where a line alone does not: its kind unless it
// is the usual one, and its channels unless they are as expected.
func (g Graph) edgeText(e Edge) string {
	text := ""
	if e.Kind != Replaces {
		text = e.Kind.String()
	}
	if len(e.Channels) == 0 || slices.Equal(e.Channels, g.expected(e)) {
		return text
	}
	return strings.TrimSpace(text + " (" + g.channelNames(e.Channels) + ")")
}

// expected channels of an edge: those of both its ends, or if there are none,
// those of the bundle that is upgraded to.
func (g Graph) expected(e Edge) []int {
	from, to := g.Nodes[e.From].Channels, g.Nodes[e.To].Channels
	var both []int
	for _, channel := range to {
		if slices.Contains(from, channel) {
			both = append(both, channel)
		}
	}
	if len(both) == 0 {
		return to
	}
	return both
}

// lines are all that a box for a node says.
func (g Graph) lines(number int) []string {
	node := g.Nodes[number]
	lines := []string{node.label()}
	if name := g.name(node); name != "" {
		lines = append(lines, name)
	}
	if len(node.Channels) > 0 {
		lines = append(lines, g.channelNames(node.Channels))
	}
	return append(lines, g.notes(number)...)
}

func (g Graph) onPath(number int) bool { return slices.Contains(g.Path, number) }
