package catalogsource

import (
	"context"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/preparedpackage"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Catalogs are catalogs that were read without a cluster.
type Catalogs struct {
	// Names are in the order of the sources.
	Names []string

	client *catalogclient.Client
}

// LoadAll reads catalogs, whose names differ as those of [ParseAll] do. The error names the source
// that cannot be read.
func (r *Reader) LoadAll(ctx context.Context, sources []Source) (*Catalogs, error) {
	client, err := catalogclient.New(catalogclient.Config{HTTPClient: r.HTTP})
	if err != nil {
		return nil, err
	}
	defer r.HTTP.CloseIdleConnections()
	loaded := &Catalogs{client: client}
	for _, source := range sources {
		loaded.Names = append(loaded.Names, source.Name)
		if err := r.Load(ctx, source, client, source.Name); err != nil {
			return nil, err
		}
	}
	return loaded, nil
}

// Offers are the catalogs with what they have of a package, as resolution takes them,
// and their packages by the names of the catalogs.
func (c *Catalogs) Offers(name string, priorities map[string]int32) (map[string]resolve.Package, []resolve.Catalog) {
	packages := map[string]resolve.Package{}
	catalogs := make([]resolve.Catalog, 0, len(c.Names))
	for _, catalog := range c.Names {
		offer := resolve.Catalog{Name: catalog, Priority: priorities[catalog]}
		found, err := c.client.Package(catalog, name)
		switch {
		case err != nil:
			offer.Err = err
		case found != nil:
			packages[catalog] = *found
			offer.Package = resolve.Prepare(packages[catalog])
		}
		catalogs = append(catalogs, offer)
	}
	return packages, catalogs
}

// AddProperties adds to the extensions of a cluster, which may be nil, the properties
// that the first catalog that has their bundle knows.
func (c *Catalogs) AddProperties(cluster *requirement.Cluster) {
	if cluster == nil {
		return
	}
	for i := range cluster.Extensions {
		extension := &cluster.Extensions[i]
		packages, _ := c.Offers(extension.Package, nil)
		for _, name := range c.Names {
			bundles := packages[name].Bundles
			n := slices.IndexFunc(bundles, func(b resolve.Bundle) bool { return b.Version == extension.Version })
			if n >= 0 {
				extension.Properties = bundles[n].Properties()
				break
			}
		}
	}
}

// Stock is all that the catalogs have.
func (c *Catalogs) Stock() resolve.Stock {
	all := preparedpackage.New(c.client)
	return resolve.Stock{
		Catalogs: c.Names,
		Package: func(catalog, name string) *resolve.Prepared {
			found, err := all.Package(catalog, name)
			if err != nil {
				return nil
			}
			return found
		},
		Providers: all.Providers,
	}
}
