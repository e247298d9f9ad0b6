package controller

import (
	"context"
	"fmt"
	"slices"

	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// providersOf names the packages of available catalogs, whether or not the spec
// selects them, that would bring what is missing; sorted. Nothing is installed
// on that account. It reads from memory only.
func (r *Reconciler) providersOf(ctx context.Context, missing []requirement.Unmet) ([]string, error) {
	if len(missing) == 0 {
		return nil, nil
	}
	var list ocv1.ClusterCatalogList
	if err := r.Client.List(ctx, &list, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("error listing catalogs: %w", err)
	}
	available := map[string]bool{}
	for i := range list.Items {
		available[list.Items[i].Name] = isAvailable(&list.Items[i])
	}
	var providers []string
	add := func(provider Provider) {
		if available[provider.Catalog] {
			providers = append(providers, fmt.Sprintf("package %q of catalog %q", provider.Package, provider.Catalog))
		}
	}
	for _, unmet := range missing {
		for _, wanted := range unmet.Packages {
			for catalog := range available {
				if r.offers(catalog, wanted) {
					add(Provider{Catalog: catalog, Package: wanted.Package})
				}
			}
		}
		for _, api := range unmet.APIs {
			for _, provider := range r.Catalogs.Providers(api) {
				add(provider)
			}
		}
	}
	slices.Sort(providers)
	return slices.Compact(providers), nil
}

func (r *Reconciler) offers(catalog string, wanted requirement.PackageRange) bool {
	prepared, err := r.Catalogs.Package(catalog, wanted.Package)
	return err == nil && prepared != nil && prepared.Offers(wanted.Range)
}
