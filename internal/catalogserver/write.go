package catalogserver

import (
	"context"
	"fmt"

	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// writer makes the API server's view of a catalog what it should be. It writes
// only what differs, and only onto what was read: lists are replaced as a whole
// by a patch, and whose they are besides ours is not known here.
type writer struct{ client client.Client }

// status writes status unless the catalog has it.
func (w writer) status(ctx context.Context, catalog *ocv1.ClusterCatalog, status ocv1.ClusterCatalogStatus) error {
	if equality.Semantic.DeepEqual(catalog.Status, status) {
		return nil
	}
	changed := catalog.DeepCopy()
	changed.Status = status
	if err := w.client.Status().Patch(ctx, changed, lockedPatch(catalog)); err != nil {
		return fmt.Errorf("error updating status: %w", err)
	}
	changed.DeepCopyInto(catalog)
	return nil
}

// metadata writes the name label, and the finalizer or its absence, unless the
// catalog has them. It reports whether it wrote.
func (w writer) metadata(ctx context.Context, catalog *ocv1.ClusterCatalog, finalizer bool) (bool, error) {
	changed := catalog.DeepCopy()
	dirty := setNameLabel(changed)
	if finalizer {
		dirty = controllerutil.AddFinalizer(changed, ocv1.DeleteServerCacheFinalizer) || dirty
	} else {
		dirty = controllerutil.RemoveFinalizer(changed, ocv1.DeleteServerCacheFinalizer) || dirty
	}
	if !dirty {
		return false, nil
	}
	err := w.client.Patch(ctx, changed, lockedPatch(catalog))
	if apierrors.IsNotFound(err) && !finalizer {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("error updating finalizers: %w", err)
	}
	changed.DeepCopyInto(catalog)
	return true, nil
}

// setNameLabel reports whether it changed the label by which selectors find
// catalogs by name.
func setNameLabel(catalog *ocv1.ClusterCatalog) bool {
	if catalog.Labels[ocv1.MetadataNameLabel] == catalog.Name {
		return false
	}
	if catalog.Labels == nil {
		catalog.Labels = map[string]string{}
	}
	catalog.Labels[ocv1.MetadataNameLabel] = catalog.Name
	return true
}

func lockedPatch(base *ocv1.ClusterCatalog) client.Patch {
	return client.MergeFromWithOptions(base.DeepCopy(), client.MergeFromWithOptimisticLock{})
}
