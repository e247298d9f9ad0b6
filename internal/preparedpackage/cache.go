// Package preparedpackage has the packages of a catalog client as resolution takes
// them: a package of catalogclient -> one of resolve, prepared once for each content
// that it had.
//
// It is what catalogs are to the controller, and to those who ask what that would
// choose.
package preparedpackage

import (
	"context"
	"errors"
	"fmt"
	"sync"

	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Cache is a catalog client as the controller sees it. Packages are prepared for
// resolution once for each content that they had.
type Cache struct {
	client *catalogclient.Client

	mu       sync.Mutex
	prepared map[string]map[string]preparedPackage // by catalog and name
}

type preparedPackage struct {
	from *resolve.Package
	as   *resolve.Prepared
}

var _ controller.Catalogs = &Cache{}

// New has the packages of the client.
func New(client *catalogclient.Client) *Cache {
	return &Cache{client: client, prepared: map[string]map[string]preparedPackage{}}
}

// Package is nil if the catalog does not have it. The error says that nothing is known
// of the catalog.
func (c *Cache) Package(catalog, name string) (*resolve.Prepared, error) {
	found, err := c.client.Package(catalog, name)
	if err != nil || found == nil {
		return nil, err
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	known, ok := c.prepared[catalog][name]
	if !ok || known.from != found {
		known = preparedPackage{from: found, as: resolve.Prepare(*found)}
		if c.prepared[catalog] == nil {
			c.prepared[catalog] = map[string]preparedPackage{}
		}
		c.prepared[catalog][name] = known
	}
	return known.as, nil
}

// Refresh reads a catalog anew, and names the packages that have changed.
func (c *Cache) Refresh(ctx context.Context, source controller.CatalogSource) ([]string, error) {
	change, err := c.client.Refresh(ctx, catalogclient.Source(source))
	if change.CopyErr != nil {
		ctrl.LoggerFrom(ctx).Error(change.CopyErr, "catalog content is in use but could not be kept for the next start")
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	for _, name := range change.Packages {
		delete(c.prepared[source.Catalog], name)
	}
	return change.Packages, err
}

// Stock says how much is held of a catalog.
func (c *Cache) Stock(catalog string) controller.CatalogStock {
	packages, malformed := c.client.Count(catalog)
	return controller.CatalogStock{Packages: packages, Malformed: malformed}
}

// Forget drops all that is known of a catalog.
func (c *Cache) Forget(catalog string) error {
	c.mu.Lock()
	delete(c.prepared, catalog)
	c.mu.Unlock()
	return c.client.Forget(catalog)
}

// Providers are the bundles of all catalogs that provide the API.
func (c *Cache) Providers(api requirement.API) []resolve.Provider {
	return c.client.Providers(api)
}

// ForgetGone drops the content of catalogs that went away while no process was
// there to see it.
func (c *Cache) ForgetGone(ctx context.Context, reader client.Reader) error {
	var list ocv1.ClusterCatalogList
	if err := reader.List(ctx, &list); err != nil {
		return fmt.Errorf("listing ClusterCatalogs: %w", err)
	}
	exists := map[string]bool{}
	for i := range list.Items {
		exists[list.Items[i].Name] = true
	}
	var errs []error
	for _, name := range c.client.Catalogs() {
		if !exists[name] {
			errs = append(errs, c.Forget(name))
		}
	}
	return errors.Join(errs...)
}
