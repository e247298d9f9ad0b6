package catalogserver

import (
	"context"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/imageref"
)

// follow makes the store hold what the leader says is served of a catalog, by
// digest: it decides nothing, and writes nothing to the API server. What the
// leader says nothing of stays: it may be all that is left after a fault.
func (r *Reconciler) follow(ctx context.Context, catalog *ocv1.ClusterCatalog) error {
	if !catalog.DeletionTimestamp.IsZero() || catalog.Spec.AvailabilityMode == ocv1.AvailabilityModeUnavailable {
		return r.cfg.Store.Delete(catalog.Name)
	}
	origin, ok := published(catalog)
	if !ok {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	return r.contents.mirror(ctx, catalog.Name, origin)
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
// is now.
func isOfSpec(catalog *ocv1.ClusterCatalog) bool {
	progressing := meta.FindStatusCondition(catalog.Status.Conditions, ocv1.TypeProgressing)
	return catalog.Spec.Source.Image != nil && progressing != nil &&
		progressing.Status == metav1.ConditionTrue && progressing.Reason == ocv1.ReasonSucceeded &&
		progressing.ObservedGeneration == catalog.Generation
}
