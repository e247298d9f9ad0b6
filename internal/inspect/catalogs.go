package inspect

import (
	"cmp"
	"context"
	"fmt"
	"net/http"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/controller"
)

// Catalog is a ClusterCatalog.
type Catalog struct {
	Name     string
	Priority int32
	// Base is the URL below which it is served; empty if it is not.
	Base string
}

// Catalogs are those of a cluster that are available, sorted by name, and a client that
// reaches them: through the API server where a Service has them.
func Catalogs(ctx context.Context, cfg Config) ([]Catalog, *http.Client, error) {
	through, err := rest.HTTPClientFor(cfg.REST)
	if err != nil {
		return nil, nil, fmt.Errorf("setting up a client: %w", err)
	}
	scheme, err := controller.NewScheme()
	if err != nil {
		return nil, nil, err
	}
	api, err := client.New(cfg.REST, client.Options{HTTPClient: through, Scheme: scheme, Mapper: ownKinds()})
	if err != nil {
		return nil, nil, fmt.Errorf("setting up a client: %w", err)
	}
	authorities, err := authorities(ctx, api, cfg.SystemNamespace)
	if err != nil {
		return nil, nil, err
	}
	reach, err := clientThrough(cfg.REST, through, authorities)
	if err != nil {
		return nil, nil, err
	}
	list, err := available(ctx, api)
	if err != nil {
		return nil, nil, err
	}
	var catalogs []Catalog
	for _, from := range list {
		found := Catalog{Name: from.Name, Priority: from.Spec.Priority}
		if meta.IsStatusConditionTrue(from.Status.Conditions, ocv1.TypeServing) && from.Status.URLs != nil {
			found.Base = from.Status.URLs.Base
		}
		catalogs = append(catalogs, found)
	}
	return catalogs, reach, nil
}

// available are the catalogs of a cluster that are, sorted by name.
func available(ctx context.Context, api client.Reader) ([]*ocv1.ClusterCatalog, error) {
	var list ocv1.ClusterCatalogList
	if err := api.List(ctx, &list); err != nil {
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
