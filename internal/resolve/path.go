package resolve

import (
	"slices"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// Path gives the bundles that a request will lead to one after the other, as
// long as catalogs and cluster stay as they are. It begins with what is
// installed, if anything is, and ends where nothing follows or a request fails.
func Path(request Request, catalogs []Catalog) []bundle.Identity {
	var path []bundle.Identity
	been := map[bundle.Identity]bool{}
	if request.Installed != nil {
		path = append(path, *request.Installed)
		been[*request.Installed] = true
	}
	for {
		resolution, err := Resolve(request, catalogs)
		// A catalog may send upgrades round in a circle.
		if err != nil || been[resolution.Identity] {
			return path
		}
		path = append(path, resolution.Identity)
		been[resolution.Identity] = true
		request.Installed = &resolution.Identity
	}
}

// shortest is the way with the fewest upgrades from the installed bundle to another
// one, over whatever versions: the bundles on it and the last one, by number. It is
// empty if there is no way. It goes over the bundles of one catalog in order of their distance from
// the installed one.
func (s *evaluation) shortest(o *offer, target int) []int {
	if s.installed == nil || s.request.Installed.Package != s.request.Package {
		return nil
	}
	const unseen, start = -2, -1
	before := make([]int, len(o.pkg.nodes))
	for i := range before {
		before[i] = unseen
	}
	var queue []int
	visit := func(from int, reached []bool) {
		for to, ok := range reached {
			if ok && before[to] == unseen && o.pkg.nodes[to].versionErr == nil {
				before[to] = from
				queue = append(queue, to)
			}
		}
	}
	visit(start, o.upgrades)
	for len(queue) > 0 && before[target] == unseen {
		n := &o.pkg.nodes[queue[0]]
		visit(queue[0], o.pkg.edges.from(n.name, n.parsed, o.selected, len(o.pkg.nodes)))
		queue = queue[1:]
	}
	if before[target] == unseen {
		return nil
	}
	var route []int
	for at := target; at != start; at = before[at] {
		route = append(route, at)
	}
	slices.Reverse(route)
	return route
}
