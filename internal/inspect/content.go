package inspect

import (
	"context"
	"fmt"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/preparedpackage"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

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
	found, err := c.served().Package(ctx, source, catalog.Name, name)
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
