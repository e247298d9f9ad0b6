package catalogserver

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/imageref"
)

// follow makes the store hold what the leader says is served of a catalog, by
// digest: it decides nothing, and writes nothing to the API server. What the
// leader says nothing of stays: it may be all that is left after a fault.
func (r *Reconciler) follow(ctx context.Context, catalog *ocv1.ClusterCatalog) error {
	if isWithdrawn(catalog) {
		return r.cfg.Store.Delete(catalog.Name)
	}
	origin, ok := published(catalog)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return r.contents.mirror(ctx, pullsOf(catalog), origin)
}

// published returns what the status of a catalog says of its content. All that
// is recorded is from there, so that a follower that becomes the leader has
// nothing to correct.
func published(catalog *ocv1.ClusterCatalog) (Origin, bool) {
	resolved, stored := catalog.Status.ResolvedSource, catalog.Status.LastUnpacked
	if resolved == nil || resolved.Image == nil || stored == nil || imageref.Digest(resolved.Image.Ref) == "" {
		return Origin{}, false
	}
	origin := Origin{Source: resolved.Image.Ref, Canonical: resolved.Image.Ref, CheckedAt: stored.Time}
	if isOfSpec(catalog) {
		origin.Source = catalog.Spec.Source.Image.Ref
	}
	return origin, true
}

// isOfSpec reports whether the content that is served is that of the spec as it
// is now, be it that nothing newer could be had.
func isOfSpec(catalog *ocv1.ClusterCatalog) bool {
	says := func(kind, reason string) bool {
		found := meta.FindStatusCondition(catalog.Status.Conditions, kind)
		return found != nil && found.Status == metav1.ConditionTrue && found.Reason == reason && found.ObservedGeneration == catalog.Generation
	}
	return catalog.Spec.Source.Image != nil &&
		(says(ocv1.TypeProgressing, ocv1.ReasonSucceeded) || says(ocv1.TypeReady, ocv1.ReasonRetrying))
}

// Lacking names the catalogs that are served by what their status says, and of which the
// store does not have that content, sorted.
func (s *Store) Lacking(ctx context.Context, reader client.Reader) ([]string, error) {
	var catalogs ocv1.ClusterCatalogList
	if err := reader.List(ctx, &catalogs, client.UnsafeDisableDeepCopy); err != nil {
		return nil, fmt.Errorf("listing catalogs: %w", err)
	}
	var names []string
	for i := range catalogs.Items {
		catalog := &catalogs.Items[i]
		origin, ok := published(catalog)
		if !ok || isWithdrawn(catalog) {
			continue
		}
		if rec, held := s.Record(catalog.Name); !held || rec.Canonical != origin.Canonical {
			names = append(names, catalog.Name)
		}
	}
	slices.Sort(names)
	return names, nil
}

// isWithdrawn says that the content of a catalog is not to be served.
func isWithdrawn(catalog *ocv1.ClusterCatalog) bool {
	return !catalog.DeletionTimestamp.IsZero() || catalog.Spec.AvailabilityMode == ocv1.AvailabilityModeUnavailable
}
