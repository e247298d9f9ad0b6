package controller

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/requirement"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// supplyOf looks in the available catalogs, whether or not the spec selects them,
// for what is missing. Nothing is installed on that account. It reads from memory
// only.
func (r *Reconciler) supplyOf(ctx context.Context, missing []requirement.Unmet) (resolve.Supply, error) {
	if len(missing) == 0 {
		return resolve.Supply{}, nil
	}
	var list ocv1.ClusterCatalogList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return resolve.Supply{}, fmt.Errorf("error listing catalogs: %w", err)
	}
	var available []string
	for i := range list.Items {
		catalog := &list.Items[i]
		if !isAvailable(catalog) {
			continue
		}
		if r.isBeingRead(catalog, "") && r.acting() < catalogsTimeout {
			return resolve.Supply{}, nil // told when the content is read, which wakes who waits
		}
		available = append(available, catalog.Name)
	}
	slices.Sort(available)
	stock := resolve.Stock{
		Catalogs:  available,
		Providers: r.Catalogs.Providers,
		Package: func(catalog, name string) *resolve.Prepared {
			prepared, err := r.Catalogs.Package(catalog, name)
			if err != nil {
				return nil // its catalog says so
			}
			return prepared
		},
	}
	return stock.Supply(missing), nil
}
