package inspect

import (
	"context"
	"fmt"
	"net/http"

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
	var list ocv1.ClusterCatalogList
	if err := api.List(ctx, &list); err != nil {
		return nil, nil, fmt.Errorf("listing ClusterCatalogs: %w", err)
	}
	var catalogs []Catalog
	for i := range list.Items {
		from := &list.Items[i]
		if from.Spec.AvailabilityMode == ocv1.AvailabilityModeUnavailable {
			continue
		}
		found := Catalog{Name: from.Name, Priority: from.Spec.Priority}
		if meta.IsStatusConditionTrue(from.Status.Conditions, ocv1.TypeServing) && from.Status.URLs != nil {
			found.Base = from.Status.URLs.Base
		}
		catalogs = append(catalogs, found)
	}
	return catalogs, reach, nil
}
