package upgradegraph

// Bounds of a drawing. They are far beyond what people can read, and keep the
// drawing of a hostile catalog to about ten megabytes. Lines are edges counted
// once for each of their channels.
const (
	maxNodes    = 2000
	maxChannels = 100
	maxEdges    = 10000
	maxLines    = 200000
)

// Graph is what there is to draw of a package. Nodes and channels are numbered
// by their place in the lists.
type Graph struct {
	Package string
	Notice  Notice

	// Nodes, newest first.
	Nodes []Node

	// Channels, that with the newest head first.
	Channels []Channel

	// Edges, sorted.
	Edges []Edge

	// Path are the nodes that upgrades pass through, beginning with the one that
	// is installed; none if there is no path to show.
	Path []int

	// LeftOut counts what is beyond the bounds of a drawing.
	LeftOut LeftOut
}

// Notice is a deprecation. A deprecated thing can do without a message.
type Notice struct {
	Deprecated bool
	Message    string
}

// Node is a bundle that the catalog has, or only names.
type Node struct {
	Name   string
	Notice Notice

	// Version as the catalog has it; empty if it has none.
	Version string

	// Missing says that the catalog has no such bundle: a channel names it, or
	// it is installed.
	Missing bool

	// Channels that have an entry for the bundle.
	Channels []int

	// Elsewhere says that only channels have an entry that are not drawn.
	Elsewhere bool

	// Ranges of versions that the bundle upgrades, whether or not there are
	// edges for them.
	Ranges []SkipRange
}

// SkipRange of one or several entries of a bundle.
type SkipRange struct {
	Text     string
	Channels []int

	// Invalid ranges have no effect.
	Invalid bool
}

// Channel of the package.
type Channel struct {
	Name   string
	Notice Notice

	// Head is the newest bundle that nothing in the channel replaces or skips, or
	// if there is none, the newest; -1 in a channel without bundles.
	Head int
}

// Kind of an edge.
type Kind uint8

const (
	// Replaces: an entry names the one bundle that it follows.
	Replaces Kind = iota

	// Skips: an entry lists the bundle among those that it skips.
	Skips

	// InRange: the version of the bundle is in the skipRange of an entry. Only
	// bundles that nothing replaces or skips have such an edge, to the newest of
	// the bundles that they reach so, and those on the path. A thousand versions
	// would have half a million otherwise.
	InRange

	// Undeclared: the path goes where no entry leads.
	Undeclared
)

func (k Kind) String() string {
	return [...]string{"replaces", "skips", "skipRange", "not declared"}[k]
}

// Edge is the upgrade from one node to another.
type Edge struct {
	From, To int
	Kind     Kind

	// Channels that declare it; none if it is Undeclared.
	Channels []int

	OnPath bool
}

// LeftOut counts what is left out.
type LeftOut struct {
	Nodes, Channels, Edges int
}

// View says what to draw of a package.
type View struct {
	// Channels to draw, by name, with all bundles that they name; none means the
	// whole package.
	Channels []string

	// Path are the names of the bundles that upgrades pass through, the installed
	// one first; see [Graph.Path].
	Path []string
}
