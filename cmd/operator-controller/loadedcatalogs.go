package main

import (
	"context"
	"strconv"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// loadedCatalogs are catalogs that were read without a cluster.
type loadedCatalogs struct {
	client *catalogclient.Client
	// names are in the order of the sources.
	names []string
}

// loadedPackage is a package and the name of the catalog that has it.
type loadedPackage struct {
	Catalog string
	Package resolve.Package
}

// loadCatalogs reads catalogs. Of several with one name, the second one gets "-2",
// and so on. The error is a *usageError, or names the source that cannot be read.
func loadCatalogs(ctx context.Context, reader *catalogsource.Reader, sources []string) (*loadedCatalogs, error) {
	client, err := catalogclient.New(catalogclient.Config{HTTPClient: reader.HTTP})
	if err != nil {
		return nil, err
	}
	defer reader.HTTP.CloseIdleConnections()
	parsed, err := parseSources(sources)
	if err != nil {
		return nil, err
	}
	loaded := &loadedCatalogs{client: client}
	taken := map[string]bool{}
	for _, source := range parsed {
		name := unusedName(source.Name, taken)
		taken[name] = true
		loaded.names = append(loaded.names, name)
		if err := reader.Load(ctx, source, client, name); err != nil {
			return nil, trustError(err)
		}
	}
	return loaded, nil
}

// loadPackages returns the package of every catalog that has it, in the order of
// the sources, of which loadCatalogs has the rules.
func loadPackages(ctx context.Context, reader *catalogsource.Reader, sources []string, name string) ([]loadedPackage, error) {
	loaded, err := loadCatalogs(ctx, reader, sources)
	if err != nil {
		return nil, err
	}
	var packages []loadedPackage
	for _, catalog := range loaded.names {
		found, err := loaded.client.Package(catalog, name)
		if err != nil {
			return nil, err
		}
		if found != nil {
			packages = append(packages, loadedPackage{Catalog: catalog, Package: *found})
		}
	}
	return packages, nil
}

func unusedName(name string, taken map[string]bool) string {
	unused := name
	for n := 2; taken[unused]; n++ {
		unused = name + "-" + strconv.Itoa(n)
	}
	return unused
}
