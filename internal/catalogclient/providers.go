package catalogclient

import (
	"cmp"
	"encoding/json"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Providers returns the packages of all catalogs that have a bundle with an
// olm.gvk property of the API, sorted by catalog and package. It reads the whole
// of every index, which is for messages that are seldom due.
func (c *Client) Providers(api requirement.API) []resolve.Provider {
	var providers []resolve.Provider
	for _, catalog := range c.Catalogs() {
		h := c.lookup(catalog)
		if h == nil {
			continue
		}
		idx := h.state.Load().index
		if idx == nil {
			continue
		}
		for name, e := range idx.packages {
			if provides(&e.Package, api) {
				providers = append(providers, resolve.Provider{Catalog: catalog, Package: name})
			}
		}
	}
	slices.SortFunc(providers, func(a, b resolve.Provider) int {
		return cmp.Or(cmp.Compare(a.Catalog, b.Catalog), cmp.Compare(a.Package, b.Package))
	})
	return providers
}

func provides(p *resolve.Package, want requirement.API) bool {
	// Bundles share properties, each of which need be read once only.
	read := map[*requirement.Property]bool{}
	for _, bundle := range p.Bundles {
		if bundle.Facts == nil {
			continue
		}
		for _, property := range bundle.Facts.Properties {
			if property.Type != propertyGVK || read[property] {
				continue
			}
			read[property] = true
			var provided requirement.API
			if err := json.Unmarshal(property.Value, &provided); err == nil && provided == want {
				return true
			}
		}
	}
	return false
}
