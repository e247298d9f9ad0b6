package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/requeue"
)

// catalogWorkers is how many catalogs are read at a time.
const catalogWorkers = 2

// maxCatalogBackoff is short: a catalog that has just been announced may not be
// served by every replica yet.
const maxCatalogBackoff = 30 * time.Second

// CatalogReconciler keeps the content of every served catalog at hand, and
// wakes the extensions whose package has changed.
type CatalogReconciler struct {
	Client     client.Client
	Catalogs   Catalogs
	Neighbours *Neighbours
	Wakeups    *requeue.Wakeups
	Metrics    *CatalogMetrics

	// Stock says how much is held of a catalog; nothing if no content is at hand.
	Stock func(catalog string) CatalogStock

	// stored are catalogs with content that was not to be had before, which their status
	// does not tell.
	stored requeue.Wakeups

	// failing has for each catalog that cannot be read why, as it was logged.
	failing sync.Map
}

// SetupCatalogs registers the reconciler of catalog content.
func SetupCatalogs(mgr ctrl.Manager, r *CatalogReconciler) error {
	err := ctrl.NewControllerManagedBy(mgr).
		Named("catalogcontent").
		For(&ocv1.ClusterCatalog{}).
		WatchesRawSource(&r.stored).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: catalogWorkers,
			RateLimiter:             newQueueBackoff(),
		}).
		Complete(requeue.Quietly(r, workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minBackoff, maxCatalogBackoff)))
	if err != nil {
		return fmt.Errorf("setting up the controller of catalog content: %w", err)
	}
	return nil
}

// Stored is for who has content of a catalog from now on that it lacked before.
func (r *CatalogReconciler) Stored(catalog string) { r.stored.Wake(catalog) }

// Reconcile reads the content of one catalog if it is not held yet.
func (r *CatalogReconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	catalog := &ocv1.ClusterCatalog{}
	err := r.Client.Get(ctx, req.NamespacedName, catalog)
	if apierrors.IsNotFound(err) {
		r.failing.Delete(req.Name)
		r.Metrics.forget(req.Name)
		err = r.Catalogs.Forget(req.Name)
		return ctrl.Result{}, err
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("reading ClusterCatalog %q: %w", req.Name, err)
	}
	source, ok := sourceOf(catalog)
	if !ok {
		r.Metrics.passed(catalog, r.Stock(catalog.Name), false)
		return ctrl.Result{}, nil
	}
	_, missing := r.Catalogs.Package(catalog.Name, "")
	changed, err := r.Catalogs.Refresh(ctx, source)
	isNews := r.report(ctx, catalog.Name, err)
	r.Metrics.passed(catalog, r.Stock(catalog.Name), err != nil)
	if err != nil {
		err = &requeue.ReportedError{Err: err}
	}
	if missing != nil && isNews {
		// Everybody has waited for this catalog, if only to hear that the
		// package is not in it, or why it cannot be read. That it still cannot
		// is nothing that they have not heard.
		err = errors.Join(err, r.wake(ctx, req, func(string) bool { return true }))
	} else if len(changed) > 0 {
		err = errors.Join(err, r.wake(ctx, req, func(pkg string) bool { return slices.Contains(changed, pkg) }))
	}
	if err != nil {
		return ctrl.Result{}, fmt.Errorf("error populating cache for catalog %q: %w", catalog.Name, err)
	}
	return ctrl.Result{}, nil
}

// report logs once that, and why, the content of a catalog cannot be read. Extensions
// that wait for it say so in their status. It says whether that was not known before: the
// content was read, or cannot be for another reason.
func (r *CatalogReconciler) report(ctx context.Context, catalog string, err error) (isNews bool) {
	if err == nil {
		r.failing.Delete(catalog)
		return true
	}
	logger, text := log.FromContext(ctx), loggable(err)
	known, loaded := r.failing.Swap(catalog, text)
	if isNews = !loaded || known != text; !isNews {
		logger = logger.V(1)
	}
	logger.Info("the content of the catalog cannot be read", keyReason, text)
	return isNews
}

// sourceOf is false for a catalog that offers no content now. What was read of
// it before stays at hand.
func sourceOf(catalog *ocv1.ClusterCatalog) (CatalogSource, bool) {
	status := catalog.Status
	if !isServing(catalog) || status.ResolvedSource == nil || status.ResolvedSource.Image == nil || status.URLs == nil {
		return CatalogSource{}, false
	}
	return CatalogSource{Catalog: catalog.Name, Digest: status.ResolvedSource.Image.Ref, BaseURL: status.URLs.Base}, true
}

// wake asks for a pass over the extensions that draw a matching package from a
// catalog, and over those that look at others: what is installed, and what would
// bring what is missing, is known from catalogs that they need not select.
//
// It comes after a read that can take minutes. Labels that were changed meanwhile
// have woken extensions too early, so those count that the catalog has now.
func (r *CatalogReconciler) wake(ctx context.Context, req ctrl.Request, matches func(pkg string) bool) error {
	r.Neighbours.expire()
	catalog := &ocv1.ClusterCatalog{}
	if err := r.Client.Get(ctx, req.NamespacedName, catalog); err != nil {
		return client.IgnoreNotFound(err)
	}
	needs := newNeedsReader(ctx, r.Neighbours)
	return eachExtension(ctx, r.Client, func(ext *ocv1.ClusterExtension) {
		filter := ext.Spec.Source.Catalog
		if filter != nil && matches(filter.PackageName) && selects(filter, catalog) || looksAtOthers(needs(ext)) {
			r.Wakeups.WakeWith(ext.Name, priorityOf(ext))
		}
	})
}
