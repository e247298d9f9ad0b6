package inspect

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/catalogsummary"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/preparedpackage"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// content is what catalogs have, as they are read from outside of the cluster.
type content struct {
	http *http.Client
}

// Summary has a line for each package of a catalog that is served. A server that has one
// sends no more than that; of any other, the whole catalog is read.
func (c *Cluster) Summary(ctx context.Context, catalog *ocv1.ClusterCatalog) ([]catalogsummary.Package, error) {
	source, err := sourceOf(catalog)
	if err != nil {
		return nil, err
	}
	return (&catalogsource.Reader{HTTP: c.content.http}).Summary(ctx, source)
}

// Catalogs are those of the cluster that are available, sorted by name.
func (c *Cluster) Catalogs(ctx context.Context) ([]*ocv1.ClusterCatalog, error) {
	return available(ctx, c.reconciler.Client)
}

// Package is all that a catalog says of one package.
type Package struct {
	catalogsource.Package

	catalogs controller.Catalogs // that have no other package
}

// Package asks a catalog that is served for one package, and for nothing else; nil if it has
// none of the name.
func (c *Cluster) Package(ctx context.Context, catalog *ocv1.ClusterCatalog, name string) (*Package, error) {
	source, err := sourceOf(catalog)
	if err != nil {
		return nil, err
	}
	found, err := (&catalogsource.Reader{HTTP: c.content.http}).Package(ctx, source, catalog.Name, name)
	if status, ok := errors.AsType[*catalogclient.StatusError](err); ok && hintFor(status.Code) != "" {
		err = fmt.Errorf("%w: %s", err, hintFor(status.Code))
	}
	if err != nil || found == nil {
		return nil, err
	}
	return &Package{Package: *found, catalogs: onePackage{preparedpackage.New(found.Client)}}, nil
}

// ExplainPackage is [Cluster.ExplainExtension] for an extension that chooses from the one
// catalog that a package is from. No catalog is read for it: what other packages could bring
// is not known.
func (c *Cluster) ExplainPackage(ctx context.Context, pkg *Package, ext *ocv1.ClusterExtension) (controller.Explanation, error) {
	asked := controller.Reconciler{
		Client: c.reconciler.Client, Catalogs: pkg.catalogs, Metrics: c.reconciler.Metrics, Now: c.reconciler.Now,
		Platform: c.reconciler.Platform, Neighbours: controller.NewNeighbours(c.reconciler.Client, pkg.catalogs),
	}
	found, err := asked.ExplainExtension(ctx, ext)
	found.Supply = resolve.Supply{} // others were not asked
	found.Unknown = append(found.Unknown, c.unknown...)
	return found, err
}

// Configuration is what the bundle can be configured by that would be chosen for an extension.
type Configuration struct {
	Bundle bundle.Identity
	// Schema is a JSON schema of draft 7.
	Schema map[string]any
	// Problem is what is wrong with the configuration of the extension; nil if nothing is. It
	// may be a [*bundle.ConfigError].
	Problem error
}

// Configuration pulls the bundle that would be chosen from a package. The error says that none
// is, or that it cannot be read.
func (c *Cluster) Configuration(ctx context.Context, pkg *Package, ext *ocv1.ClusterExtension, images image.Config) (Configuration, error) {
	explained, err := c.ExplainPackage(ctx, pkg, ext)
	if err != nil {
		return Configuration{}, err
	}
	chosen := explained.Resolution
	if chosen == nil {
		return Configuration{}, fmt.Errorf("no bundle is chosen: %w", explained.Err)
	}
	pulled, err := image.Once(ctx, images, image.Request{Ref: chosen.Image, Select: image.BundleContent})
	if err != nil {
		return Configuration{}, err
	}
	defer pulled.Close()
	content, err := bundle.Parse(pulled.Files)
	if err != nil {
		return Configuration{}, err
	}
	found := Configuration{Bundle: chosen.Identity}
	if found.Schema, err = bundle.ConfigSchema(content); err != nil {
		return Configuration{}, err
	}
	var inline []byte
	if config := ext.Spec.Config; config != nil && config.Inline != nil {
		inline = config.Inline.Raw
	}
	_, found.Problem = bundle.ParseConfig(content, ext.Spec.Namespace, inline)
	return found, nil
}

// onePackage are catalogs of which one package was read, and nothing else is.
type onePackage struct{ *preparedpackage.Cache }

// Refresh reads nothing.
func (onePackage) Refresh(context.Context, controller.CatalogSource) ([]string, error) {
	return nil, nil
}

// Description is the object by which a catalog describes a package, with its icon; it is
// empty if there is none. Whoever reads it has to bound it, and closes it.
func (c *Cluster) Description(ctx context.Context, catalog *ocv1.ClusterCatalog, name string) (io.ReadCloser, error) {
	return c.open(ctx, catalog, url.Values{"schema": {"olm.package"}, "name": {name}})
}

// open asks the server of a catalog for some of its objects.
func (c *Cluster) open(ctx context.Context, catalog *ocv1.ClusterCatalog, query url.Values) (io.ReadCloser, error) {
	base, err := servedAt(catalog)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("catalog %q: %w", catalog.Name, err)
	}
	address = address.JoinPath("api", "v1", "metas")
	address.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	reply, err := c.content.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading catalog %q: %w", catalog.Name, err)
	}
	if reply.StatusCode != http.StatusOK {
		_ = reply.Body.Close() // the code says it
		return nil, fmt.Errorf("reading catalog %q: %w", catalog.Name, &catalogclient.StatusError{Code: reply.StatusCode, Detail: hintFor(reply.StatusCode)})
	}
	return reply.Body, nil
}

// hintFor says which right is missing where it is one of the API server that is.
func hintFor(code int) string {
	if code == http.StatusForbidden || code == http.StatusUnauthorized {
		return "it takes the right to get services/proxy in the namespace of the controller"
	}
	return ""
}

// servedAt is the URL below which a catalog is served.
func servedAt(catalog *ocv1.ClusterCatalog) (string, error) {
	if catalog.Status.URLs == nil {
		return "", fmt.Errorf("catalog %q is not served", catalog.Name)
	}
	return catalog.Status.URLs.Base, nil
}

func sourceOf(catalog *ocv1.ClusterCatalog) (catalogsource.Source, error) {
	base, err := servedAt(catalog)
	if err != nil {
		return catalogsource.Source{}, err
	}
	source, err := catalogsource.Parse(base)
	if err != nil {
		return catalogsource.Source{}, fmt.Errorf("catalog %q: %w", catalog.Name, err)
	}
	return source, nil
}
