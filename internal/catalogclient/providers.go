package catalogclient

import (
	"cmp"
	"encoding/json"
	"slices"
)

// Provider is a package that has a bundle which provides an API.
type Provider struct {
	Catalog, Package string
}

// Providers returns the packages of all catalogs that have a bundle with an
// olm.gvk property of the API, sorted by catalog and package. It reads the whole
// of every index, which is for messages that are seldom due.
func (c *Client) Providers(group, version, kind string) []Provider {
	want := api{Group: group, Version: version, Kind: kind}
	var providers []Provider
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
			if e.Package.provides(want) {
				providers = append(providers, Provider{Catalog: catalog, Package: name})
			}
		}
	}
	slices.SortFunc(providers, func(a, b Provider) int {
		return cmp.Or(cmp.Compare(a.Catalog, b.Catalog), cmp.Compare(a.Package, b.Package))
	})
	return providers
}

// api is the value of an olm.gvk property.
type api struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

func (p *Package) provides(want api) bool {
	// Bundles share properties, each of which need be read once only.
	read := map[*Property]bool{}
	for _, bundle := range p.Bundles {
		if bundle.Facts == nil {
			continue
		}
		for _, property := range bundle.Facts.Properties {
			if property.Type != propertyGVK || read[property] {
				continue
			}
			read[property] = true
			var provided api
			if err := json.Unmarshal(property.Value, &provided); err == nil && provided == want {
				return true
			}
		}
	}
	return false
}
