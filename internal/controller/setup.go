package controller

import (
	"context"
	"errors"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/equality"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/types"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/builder"
	"sigs.k8s.io/controller-runtime/pkg/cache"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/predicate"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"
	"sigs.k8s.io/controller-runtime/pkg/source"

	policyv1alpha1 "github.com/clusterextensions/operator-controller/api/policy/v1alpha1"
	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/requeue"
)

// DefaultSystemNamespace is where the controller is installed.
const DefaultSystemNamespace = "olmv1-system"

// NewScheme has the kinds that are read and written.
func NewScheme() (*runtime.Scheme, error) {
	scheme := runtime.NewScheme()
	if err := errors.Join(ocv1.AddToScheme(scheme), policyv1alpha1.AddToScheme(scheme), corev1.AddToScheme(scheme)); err != nil {
		return nil, fmt.Errorf("registering types: %w", err)
	}
	return scheme, nil
}

// Setup registers the reconciler of ClusterExtensions and what wakes it.
func Setup(mgr ctrl.Manager, r *Reconciler, sources Sources, workers int) error {
	r.remember(sources.Wakeups)
	r.Neighbours.follow()
	err := ctrl.NewControllerManagedBy(mgr).
		Named("clusterextension").
		For(&ocv1.ClusterExtension{}, builder.WithPredicates(r.extensionEdited())).
		Watches(&ocv1.ClusterExtension{}, newsFirst()).
		Watches(&ocv1.ClusterExtension{}, r.removals.handler()).
		Watches(&ocv1.ClusterCatalog{}, r.wakes(r.selecting, priorityOf), builder.WithPredicates(catalogMoved())).
		Watches(&corev1.ServiceAccount{}, r.wakes(r.using, atNow), builder.WithPredicates(accountMoved())).
		Watches(&ocv1.ClusterExtension{}, r.wakes(r.concernedBy, priorityOf), builder.WithPredicates(r.Neighbours.noted(), installMoved())).
		WatchesRawSource(sources.Wakeups).
		WatchesRawSource(requeue.Telling(r.holds.notice, sources.Content)).
		WatchesRawSource(source.TypedChannel(sources.APIs, r.wakesAt(r.toldOtherwise))).
		WatchesRawSource(source.TypedChannel(sources.Rights, r.toThoseDenied())).
		WatchesRawSource(source.TypedChannel(sources.Policies, r.wakesAt(r.everybody))).
		WithOptions(controller.Options{
			MaxConcurrentReconciles: workers,
			RateLimiter:             newQueueBackoff(),
			NewQueue:                requeue.NewQueue(r.holds.ask),
		}).
		Complete(requeue.Quietly(r, r.backoff))
	if err != nil {
		return fmt.Errorf("setting up the controller of ClusterExtensions: %w", err)
	}
	return nil
}

// HoldOnStandby has every replica hold what passes read. Otherwise only the reconcilers ask
// for it, which run where the lease is: the replica that takes it over would begin with
// reading all extensions and ServiceAccounts of the cluster. Catalogs are followed everywhere.
func HoldOnStandby(ctx context.Context, held cache.Cache) error {
	for _, kind := range []client.Object{&ocv1.ClusterExtension{}, &corev1.ServiceAccount{}} {
		if _, err := held.GetInformer(ctx, kind, cache.BlockUntilSynced(false)); err != nil {
			return fmt.Errorf("setting up the cache of %T: %w", kind, err)
		}
	}
	return nil
}

// remember makes what passes remember of failures, with nothing in it.
func (r *Reconciler) remember(wakeups *requeue.Wakeups) {
	r.backoff, r.holds, r.cohorts = newBackoff(r.Now), newHolds(), newCohorts()
	r.wake = func(extension string) { wakeups.WakeWith(extension, requeue.Later) }
}

// extensionEdited ignores our own status writes.
func (r *Reconciler) extensionEdited() predicate.Predicate {
	finalizersChanged := predicate.Funcs{UpdateFunc: func(e event.UpdateEvent) bool {
		return !slices.Equal(e.ObjectOld.GetFinalizers(), e.ObjectNew.GetFinalizers())
	}}
	return predicate.Or(predicate.GenerationChangedPredicate{}, predicate.AnnotationChangedPredicate{}, finalizersChanged, predicate.Funcs{UpdateFunc: r.statusDiffers})
}

// statusDiffers notices a status that is not what the last pass came to. Somebody
// has written it, or we have and did not see it in time: a pass that works on an
// older status can find that it says all that there is to say, and writes
// nothing.
func (r *Reconciler) statusDiffers(e event.UpdateEvent) bool {
	before, isExtension := e.ObjectOld.(*ocv1.ClusterExtension)
	after, isStillExtension := e.ObjectNew.(*ocv1.ClusterExtension)
	if !isExtension || !isStillExtension || equality.Semantic.DeepEqual(&before.Status, &after.Status) {
		return false
	}
	// What was announced comes to be known late, when there is more to say already.
	announced, known := r.announced.Load(after.Name)
	if known && equality.Semantic.DeepEqual(announced, &after.Status) {
		return false
	}
	concluded, known := r.concluded.Load(after.Name)
	return known && !equality.Semantic.DeepEqual(concluded, &after.Status)
}

// isNew ignores what there is when the process begins: every extension is looked at then.
func isNew(e event.CreateEvent) bool { return !e.IsInInitialList }

// catalogMoved leaves new content to the [CatalogReconciler], which wakes those
// whose package has changed.
func catalogMoved() predicate.Predicate {
	return predicate.Funcs{CreateFunc: isNew, UpdateFunc: func(e event.UpdateEvent) bool {
		before, isCatalog := e.ObjectOld.(*ocv1.ClusterCatalog)
		after, isStillCatalog := e.ObjectNew.(*ocv1.ClusterCatalog)
		if !isCatalog || !isStillCatalog {
			return false
		}
		return before.Spec.Priority != after.Spec.Priority ||
			before.Spec.AvailabilityMode != after.Spec.AvailabilityMode ||
			!sameForSelectors(before, after) ||
			before.DeletionTimestamp.IsZero() != after.DeletionTimestamp.IsZero() ||
			isServing(before) != isServing(after) ||
			isUnpolled(before) != isUnpolled(after)
	}}
}

// accountMoved notices a ServiceAccount that appears, goes, or has other pull
// secrets.
func accountMoved() predicate.Predicate {
	return predicate.Funcs{CreateFunc: isNew, UpdateFunc: func(e event.UpdateEvent) bool {
		before, isAccount := e.ObjectOld.(*corev1.ServiceAccount)
		after, isStillAccount := e.ObjectNew.(*corev1.ServiceAccount)
		return isAccount && isStillAccount && !slices.Equal(before.ImagePullSecrets, after.ImagePullSecrets)
	}}
}

// selecting matches the extensions that may draw from a catalog, and those that look at
// others: what is installed, and what would bring what is missing, is known from catalogs
// that they need not select.
func (r *Reconciler) selecting(ctx context.Context, object client.Object) match {
	r.Neighbours.expire()
	catalog, ok := object.(*ocv1.ClusterCatalog)
	if !ok {
		return nobody
	}
	needs := newNeedsReader(ctx, r.Neighbours)
	return func(ext *ocv1.ClusterExtension) bool {
		filter := ext.Spec.Source.Catalog
		return filter != nil && selects(filter, catalog) || looksAtOthers(needs(ext))
	}
}

// using matches the extensions that use a ServiceAccount. The one that each namespace
// has comes and goes with it, which those tell that wait for the namespace, be it for their
// ServiceAccount or for objects.
func (r *Reconciler) using(ctx context.Context, account client.Object) match {
	return func(ext *ocv1.ClusterExtension) bool {
		if account.GetName() == defaultAccount && r.awaitsNamespace(ext.Name, account.GetNamespace()) {
			return true
		}
		if ext.Spec.Namespace != account.GetNamespace() {
			return false
		}
		name := ext.Spec.ServiceAccount.Name
		return name == account.GetName() || account.GetName() == defaultAccount && r.lacksAccount(ctx, ext.Spec.Namespace, name)
	}
}

// lacksAccount is false where it is not known.
func (r *Reconciler) lacksAccount(ctx context.Context, namespace, name string) bool {
	return apierrors.IsNotFound(r.Client.Get(ctx, types.NamespacedName{Namespace: namespace, Name: name}, &corev1.ServiceAccount{}))
}

// defaultAccount is the ServiceAccount that the cluster creates in each namespace.
const defaultAccount = "default"

func requestFor(name string) reconcile.Request {
	return reconcile.Request{NamespacedName: types.NamespacedName{Name: name}}
}
