package main

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path"
	"path/filepath"
	"strconv"
	"strings"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// catalogsUsage is the help for the flag with the sources of catalogs.
const catalogsUsage = "Catalog: a folder, or the URL below which one is served. Repeat it for several."

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

// loadCatalogs reads catalogs as the controller does. A source is a folder or the
// URL of a served catalog, with or without "/api/v1/all". The last element of its
// path is the name of the catalog; of several with one name, the second one gets
// "-2", and so on. The error names the source that cannot be read.
func loadCatalogs(ctx context.Context, sources []string) (*loadedCatalogs, error) {
	http, err := catalogclient.NewHTTPClient("")
	if err != nil {
		return nil, err
	}
	defer http.CloseIdleConnections()
	client, err := catalogclient.New(catalogclient.Config{HTTPClient: http})
	if err != nil {
		return nil, err
	}
	loaded := &loadedCatalogs{client: client}
	taken := map[string]bool{}
	for _, text := range sources {
		source, err := parseCatalogSource(text)
		if err != nil {
			return nil, err
		}
		name := unusedName(source.name, taken)
		taken[name] = true
		loaded.names = append(loaded.names, name)
		if err := source.load(ctx, client, name); err != nil {
			return nil, fmt.Errorf("reading catalog %s: %w", source, err)
		}
	}
	return loaded, nil
}

// loadPackages returns the package of every catalog that has it, in the order of
// the sources, of which loadCatalogs has the rules.
func loadPackages(ctx context.Context, sources []string, name string) ([]loadedPackage, error) {
	loaded, err := loadCatalogs(ctx, sources)
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
			packages = append(packages, loadedPackage{Catalog: catalog, Package: packageFrom(found)})
		}
	}
	return packages, nil
}

// catalogSource is where a catalog is to be had: at url or, without one, in dir.
type catalogSource struct {
	name string
	dir  string
	url  *url.URL
}

func parseCatalogSource(text string) (catalogSource, error) {
	if text == "" {
		return catalogSource{}, &usageError{err: errors.New("a catalog is a folder or a URL, and not empty")}
	}
	if !strings.HasPrefix(text, "http://") && !strings.HasPrefix(text, "https://") {
		dir, err := filepath.Abs(text)
		return catalogSource{name: filepath.Base(dir), dir: text}, err
	}
	u, err := url.Parse(text)
	if err != nil {
		return catalogSource{}, &usageError{err: err}
	}
	u.Path = strings.TrimSuffix(strings.TrimSuffix(u.Path, "/"), "/api/v1/all")
	name := path.Base(u.Path)
	if strings.Trim(u.Path, "/") == "" {
		name = u.Hostname()
	}
	return catalogSource{name: name, url: u}, nil
}

// String is the source as it may be shown: without a password.
func (s catalogSource) String() string {
	if s.url != nil {
		return s.url.Redacted()
	}
	return s.dir
}

func (s catalogSource) load(ctx context.Context, client *catalogclient.Client, name string) error {
	if s.url != nil {
		_, err := client.Refresh(ctx, catalogclient.Source{Catalog: name, Digest: s.url.String(), BaseURL: s.url.String()})
		return err
	}
	switch isDir, err := isFolder(s.dir); {
	case err != nil:
		return err
	case !isDir:
		return errors.New("there is no such folder")
	}
	return client.Load(ctx, name, os.DirFS(s.dir))
}

func unusedName(name string, taken map[string]bool) string {
	unused := name
	for n := 2; taken[unused]; n++ {
		unused = name + "-" + strconv.Itoa(n)
	}
	return unused
}
