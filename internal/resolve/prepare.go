package resolve

import (
	"cmp"
	"fmt"
	"slices"

	mm "github.com/Masterminds/semver/v3"
	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/imageref"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// Prepared is a [Package] with its versions and ranges parsed, its bundles
// ordered and its upgrade edges indexed. It is immutable and safe for
// concurrent use.
type Prepared struct {
	name         string
	nodes        []node // best first
	needs        requirement.Needs
	edges        edges
	deprecations []Deprecation
}

// Prepare parses and indexes a package. It cannot fail: what cannot be parsed
// stays in and is accounted for when bundles are chosen. The package must not
// be changed afterwards.
func Prepare(pkg Package) *Prepared {
	nodes := newNodes(pkg)
	return &Prepared{
		name:         pkg.Name,
		nodes:        nodes,
		needs:        readRequirements(nodes),
		edges:        newEdges(nodes, pkg.Channels),
		deprecations: pkg.Deprecations,
	}
}

// Image is the reference of the image of a bundle; empty if the package has no such
// bundle.
func (p *Prepared) Image(name string) string {
	i := slices.IndexFunc(p.nodes, func(n node) bool { return n.name == name })
	if i < 0 {
		return ""
	}
	return p.nodes[i].image
}

// rank is the part of the preference that goes before the priority of
// catalogs; lower is better.
type rank uint8

const (
	sound rank = iota
	deprecated
	unversioned
	unversionedDeprecated
)

// node is a bundle made ready for comparison.
type node struct {
	name, version, image string

	// digest of the image; empty if the reference is not pinned by one.
	digest digest.Digest

	rank          rank
	facts         *Facts
	properties    []*requirement.Property
	minKubernetes string
	requirements  requirement.List // shared by bundles that share properties

	// parsed and inRange are set unless versionErr is.
	parsed     bundle.Version
	inRange    *mm.Version
	versionErr error
}

func newNodes(pkg Package) []node {
	isDeprecated := make(map[string]bool, len(pkg.Deprecations))
	for _, deprecation := range pkg.Deprecations {
		if deprecation.Scope == BundleScope {
			isDeprecated[deprecation.Name] = true
		}
	}
	nodes := make([]node, 0, len(pkg.Bundles))
	for _, b := range pkg.Bundles {
		nodes = append(nodes, newNode(b, isDeprecated[b.Name]))
	}
	slices.SortStableFunc(nodes, compareNodes)
	return nodes
}

// maxRequirements bounds what is read of the requirements of one package, in bytes
// of properties. Hundreds of versions that state a dozen each, none like another,
// have less.
const maxRequirements = 1 << 20

// readRequirements reads what bundles require, those of the best first, and once of
// bundles that share it. Beyond the bound nothing meets them. It returns what has to
// be known of a cluster.
func readRequirements(nodes []node) requirement.Needs {
	known := map[*Facts]requirement.List{}
	var needs []requirement.Needs
	size := 0
	for i := range nodes {
		n := &nodes[i]
		list, read := known[n.facts]
		if !read {
			stated := requirement.Bytes(n.properties)
			size += stated
			list = n.readRequirements(stated > 0 && size > maxRequirements)
			known[n.facts] = list
			needs = append(needs, list.Needs())
		}
		n.requirements = list
	}
	return requirement.Needs{}.With(needs...)
}

func (n *node) readRequirements(tooMany bool) requirement.List {
	if tooMany {
		return requirement.Unmeetable(fmt.Sprintf("states requirements beyond the %d bytes that are read of one package", maxRequirements))
	}
	return requirement.Parse(n.properties, n.minKubernetes)
}

func newNode(b Bundle, isDeprecated bool) node {
	n := node{
		name:          b.Name,
		version:       b.Version,
		image:         b.Image,
		digest:        imageref.Digest(b.Image),
		facts:         b.Facts,
		properties:    b.Properties(),
		minKubernetes: b.MinKubernetes(),
	}
	n.parsed, n.versionErr = parseBundleVersion(b)
	if n.versionErr != nil {
		n.rank = unversioned
	} else {
		n.inRange = rangeVersion(n.parsed)
	}
	if isDeprecated {
		n.rank++
	}
	return n
}

func parseBundleVersion(b Bundle) (bundle.Version, error) {
	if b.Version == "" {
		return bundle.Version{}, fmt.Errorf("no package property found in bundle %q", b.Name)
	}
	return bundle.ParseVersion(b.Version)
}

// compareNodes puts the preferred bundle first. Version text and image only
// serve to make the order total.
func compareNodes(a, b node) int {
	return cmp.Or(
		cmp.Compare(a.rank, b.rank),
		b.parsed.Compare(a.parsed),
		cmp.Compare(a.name, b.name),
		cmp.Compare(a.version, b.version),
		cmp.Compare(a.image, b.image),
	)
}

func (n *node) identity(pkg string) bundle.Identity {
	return bundle.Identity{Package: pkg, Name: n.name, Version: n.version}
}

// sameContent says whether both are the same bundle for certain.
func (n *node) sameContent(other *node) bool {
	return n.digest != "" && n.digest == other.digest && n.name == other.name && n.version == other.version
}
