package upgradegraph

import (
	"cmp"
	"slices"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// candidate for a node.
type candidate struct {
	name    string
	missing bool
	onPath  bool

	// version that decides its place.
	version version
}

// addNodes adds every bundle that is to be drawn, newest first.
func (b *builder) addNodes(pkg resolve.Package, channels []resolve.Channel, view View) {
	placed := map[string]bool{}
	for _, channel := range pkg.Channels {
		for _, entry := range channel.Entries {
			placed[entry.Name] = true
		}
	}
	candidates := b.candidates(channels, view)
	if beyond := len(candidates) - maxNodes; beyond > 0 {
		slices.SortStableFunc(candidates, func(x, y candidate) int { return trueFirst(x.onPath, y.onPath) })
		candidates, b.graph.LeftOut.Nodes = candidates[:maxNodes], beyond
		slices.SortFunc(candidates, newestFirst)
	}
	for number, c := range candidates {
		b.numbers[c.name] = number
		node := Node{
			Name:    c.name,
			Notice:  b.notice(resolve.BundleScope, c.name),
			Version: b.bundles[c.name].Version,
			Missing: c.missing,
			// Until addEntries finds one that is drawn.
			Elsewhere: placed[c.name],
		}
		b.graph.Nodes = append(b.graph.Nodes, node)
		b.versions = append(b.versions, parseVersion(node.Version))
	}
}

func (b *builder) candidates(channels []resolve.Channel, view View) []candidate {
	names := map[string]bool{}
	if len(view.Channels) == 0 {
		for name := range b.bundles {
			names[name] = true
		}
	}
	for _, channel := range channels {
		for _, entry := range channel.Entries {
			names[entry.Name], names[entry.Replaces] = true, true
			for _, name := range entry.Skipped() {
				names[name] = true
			}
		}
	}
	for _, name := range view.Path {
		names[name] = true
	}
	delete(names, "")
	candidates := make([]candidate, 0, len(names))
	for name := range names {
		known, exists := b.bundles[name]
		c := candidate{name: name, missing: !exists, onPath: slices.Contains(view.Path, name)}
		if c.version = parseVersion(known.Version); !exists {
			c.version = versionInName(name)
		}
		candidates = append(candidates, c)
	}
	slices.SortFunc(candidates, newestFirst)
	return candidates
}

// versionInName is a guess, as in "argocd-operator.v0.8.0", good enough to put a
// bundle that the catalog does not have in a place where people look for it.
func versionInName(name string) version {
	_, text, _ := strings.Cut(name, ".v")
	return parseVersion(text)
}

func newestFirst(x, y candidate) int {
	return cmp.Or(
		trueFirst(x.version.valid, y.version.valid),
		y.version.parsed.Compare(x.version.parsed),
		trueFirst(!x.missing, !y.missing),
		cmp.Compare(x.name, y.name),
	)
}
