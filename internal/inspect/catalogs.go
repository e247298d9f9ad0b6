package inspect

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"

	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
	"github.com/clusterextensions/operator-controller/internal/catalogsummary"
	"github.com/clusterextensions/operator-controller/internal/controller"
)

// CatalogReader reads the catalogs of a cluster with the rights of whoever asks, and asks for
// nothing else of it.
type CatalogReader struct {
	api  client.Client
	http *http.Client // reaches servers of catalogs
}

// NewCatalogReader asks for what it takes to reach them. The error says that there is no way to
// the cluster.
func NewCatalogReader(ctx context.Context, cfg Config) (*CatalogReader, error) {
	through, err := rest.HTTPClientFor(cfg.REST)
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	return newCatalogReader(ctx, cfg, through)
}

func newCatalogReader(ctx context.Context, cfg Config, through *http.Client) (*CatalogReader, error) {
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, err
	}
	api, err := client.New(cfg.REST, client.Options{HTTPClient: through, Scheme: scheme, Mapper: ownKinds()})
	if err != nil {
		return nil, fmt.Errorf("setting up a client: %w", err)
	}
	authorities, err := authorities(ctx, api, cfg.SystemNamespace)
	if err != nil {
		return nil, err
	}
	reach, err := clientThrough(cfg.REST, through, authorities)
	if err != nil {
		return nil, err
	}
	return &CatalogReader{api: api, http: reach}, nil
}

// Catalogs are those whose spec does not withdraw them, sorted by name.
func (r *CatalogReader) Catalogs(ctx context.Context) ([]*ocv1.ClusterCatalog, error) {
	var list ocv1.ClusterCatalogList
	if err := r.api.List(ctx, &list); err != nil {
		return nil, fmt.Errorf("listing ClusterCatalogs: %w", err)
	}
	var found []*ocv1.ClusterCatalog
	for i := range list.Items {
		if list.Items[i].Spec.AvailabilityMode != ocv1.AvailabilityModeUnavailable {
			found = append(found, &list.Items[i])
		}
	}
	slices.SortFunc(found, func(a, b *ocv1.ClusterCatalog) int { return cmp.Compare(a.Name, b.Name) })
	return found, nil
}

// Summary has a line for each package of a catalog that is served. A server that has one
// sends no more than that; of any other, the whole catalog is read.
func (r *CatalogReader) Summary(ctx context.Context, catalog *ocv1.ClusterCatalog) ([]catalogsummary.Package, error) {
	source, err := sourceOf(catalog)
	if err != nil {
		return nil, err
	}
	return r.served().Summary(ctx, source)
}

// PackageObject is the olm.package object of a package, with its icon; it is empty if there is
// none. Whoever reads it has to bound it, and closes it.
func (r *CatalogReader) PackageObject(ctx context.Context, catalog *ocv1.ClusterCatalog, name string) (io.ReadCloser, error) {
	source, err := sourceOf(catalog)
	if err != nil {
		return nil, err
	}
	return r.served().PackageObject(ctx, source, name)
}

// served reads what servers of catalogs send.
func (r *CatalogReader) served() *catalogsource.Reader { return &catalogsource.Reader{HTTP: r.http} }

// sourceOf is where a catalog is served.
func sourceOf(catalog *ocv1.ClusterCatalog) (catalogsource.Source, error) {
	base := catalog.ServedAt()
	if base == "" {
		return catalogsource.Source{}, fmt.Errorf("catalog %q is not served: see its status", catalog.Name)
	}
	source, err := catalogsource.ParseURL(base)
	if err != nil {
		return catalogsource.Source{}, fmt.Errorf("catalog %q: %w", catalog.Name, err)
	}
	return source, nil
}
