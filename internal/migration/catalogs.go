package migration

import (
	"context"
	"fmt"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/classic"
	"github.com/clusterextensions/operator-controller/internal/inspect"
)

// Catalogs are what becomes of the CatalogSources of the cluster. It takes the rights to list
// these, Subscriptions and ClusterCatalogs.
func (c *Cluster) Catalogs(ctx context.Context) ([]classic.CatalogMove, error) {
	found := &Found{}
	reading := reading{cluster: c, found: found}
	if err := reading.catalogs(ctx); err != nil {
		return nil, err
	}
	if len(found.Unknown) > 0 {
		return nil, fmt.Errorf("not known: %s", found.Unknown[0])
	}
	return found.CatalogMoves(), nil
}

// WrittenCatalog is a ClusterCatalog as somebody would write it: what is left alone is not in it.
func WrittenCatalog(catalog *ocv1.ClusterCatalog) map[string]any {
	metadata := map[string]any{"name": catalog.Name}
	if len(catalog.Annotations) > 0 {
		annotations := map[string]any{}
		for name, value := range catalog.Annotations {
			annotations[name] = value
		}
		metadata["annotations"] = annotations
	}
	written := map[string]any{"apiVersion": ocv1.GroupVersion.String(), "kind": ocv1.ClusterCatalogKind, "metadata": metadata}
	source := catalog.Spec.Source.Image
	if source == nil {
		return written
	}
	image := map[string]any{"ref": source.Ref}
	if source.PollIntervalMinutes != nil {
		image["pollIntervalMinutes"] = int64(*source.PollIntervalMinutes)
	}
	spec := map[string]any{"source": map[string]any{"type": string(catalog.Spec.Source.Type), "image": image}}
	if catalog.Spec.Priority != 0 {
		spec["priority"] = int64(catalog.Spec.Priority)
	}
	written["spec"] = spec
	return written
}

// ApplyCatalog writes one of [Cluster.Catalogs], or only tries it in a dry run. One that is to be
// created must not be there, and one that is adopted is only annotated.
func (c *Cluster) ApplyCatalog(ctx context.Context, move classic.CatalogMove, dryRun bool) error {
	var dry []string
	if dryRun {
		dry = []string{metav1.DryRunAll}
	}
	written := &unstructured.Unstructured{Object: WrittenCatalog(move.Catalog)}
	resource := c.api.Resource(ocv1.GroupVersion.WithResource("clustercatalogs"))
	var err error
	switch move.Fate {
	case classic.CatalogCreated:
		_, err = resource.Create(ctx, written, metav1.CreateOptions{DryRun: dry, FieldManager: inspect.FieldManager})
	case classic.CatalogAdopted:
		_, err = resource.Apply(ctx, written.GetName(), written, metav1.ApplyOptions{DryRun: dry, FieldManager: inspect.FieldManager})
	case classic.CatalogServed, classic.CatalogRefused:
	}
	if err != nil {
		return fmt.Errorf("writing ClusterCatalog %q: %w", move.Catalog.Name, err)
	}
	return nil
}
