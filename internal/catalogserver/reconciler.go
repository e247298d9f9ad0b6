package catalogserver

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/client-go/util/workqueue"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/controller"
	"sigs.k8s.io/controller-runtime/pkg/controller/controllerutil"
	"sigs.k8s.io/controller-runtime/pkg/log"
	"sigs.k8s.io/controller-runtime/pkg/manager"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/fetch"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/pullsecret"
	"github.com/clusterextensions/operator-controller/internal/requeue"
	"github.com/clusterextensions/operator-controller/internal/verdict"
)

const (
	controllerName = "catalog-server"

	// pullTimeout lets a gigabyte through at 600 kB/s.
	pullTimeout = 30 * time.Minute
	// storeTimeout is far more than the largest catalog takes.
	storeTimeout = 10 * time.Minute
	// MaxPulls is how many catalogs are pulled at a time, and MaxStores how many are
	// stored, which takes memory and time of the processor. For each there is space on
	// disk, set aside where all is wired.
	MaxPulls  = 12
	MaxStores = 2
	// maxRegistryPulls and maxCatalogPulls are how many of the pulls go to one registry
	// and are of one catalog: a registry that is slow leaves most of them to others.
	maxRegistryPulls = 4
	maxCatalogPulls  = 1
	// Retries begin soon, and go on often enough for a registry that comes back.
	minRetryDelay = time.Second
	maxRetryDelay = 5 * time.Minute
	// maxUnservedDelay is that of retries while something is not served that should be.
	maxUnservedDelay = time.Minute
)

// ReconcilerConfig is what a Reconciler is made from. Every field is required.
type ReconcilerConfig struct {
	// Client reads and writes ClusterCatalogs.
	Client client.Client
	// Store is where the content goes.
	Store *Store
	// Puller gets the images.
	Puller Puller
	// Secrets have the credentials of catalogs that name some. They call [Reconciler.Wake].
	Secrets PullSecrets
	// Peers are the other replicas.
	Peers Peers
	// Signatures makes what says what ImagePolicies make of what is served, and calls wake with a
	// catalog of which there is something to know.
	Signatures func(wake func(catalog string)) Signatures
	// ExternalURL is the URL at which the cluster reaches Server.
	ExternalURL string
	// Events tells of changes.
	Events Events
	// Stored is told of a catalog with content that is new on this replica. It must not
	// block.
	Stored func(catalog string)
	// Now returns the time.
	Now func() time.Time
	// Random returns numbers in [0,1), to spread polling.
	Random func() float64
}

func (c ReconcilerConfig) validate() (*url.URL, error) {
	if c.Client == nil || c.Store == nil || c.Puller == nil || c.Secrets == nil || c.Peers == nil || c.Signatures == nil || c.Events == nil || c.Stored == nil || c.Now == nil || c.Random == nil {
		return nil, errors.New("client, store, puller, pull secrets, peers, signatures, events, a function to call, clock and source of random numbers are required")
	}
	external, err := url.Parse(c.ExternalURL)
	if err != nil {
		return nil, fmt.Errorf("external URL: %w", err)
	}
	if external.Host == "" || (external.Scheme != "http" && external.Scheme != "https") {
		return nil, fmt.Errorf("external URL %q is not an http or https URL", c.ExternalURL)
	}
	return external, nil
}

// Reconciler makes the content and the status of ClusterCatalogs what their
// spec says, on the replica that leads. On the others it makes the content what
// the status says. It is one controller, so that there is never more than one
// pass over a catalog, also while a follower becomes the leader.
type Reconciler struct {
	cfg      ReconcilerConfig
	external *url.URL
	contents contents
	writer   writer
	answers  answers
	// signatures are those of what is served.
	signatures Signatures
	// retries are the waits after tries that failed, which is no failure of a pass.
	retries workqueue.TypedRateLimiter[string]
	// leads never ends: a replica that is no longer the leader has another Reconciler.
	leads atomic.Bool
	// wakeups are catalogs to look at as the leader, and those whose content has come, or
	// has not and will not.
	wakeups requeue.Wakeups
}

// NewReconciler returns a Reconciler, or what is wrong with cfg.
func NewReconciler(cfg ReconcilerConfig) (*Reconciler, error) {
	external, err := cfg.validate()
	if err != nil {
		return nil, err
	}
	r := &Reconciler{
		cfg:      cfg,
		external: external,
		writer:   writer{client: cfg.Client},
		retries:  workqueue.NewTypedItemExponentialFailureRateLimiter[string](minRetryDelay, maxRetryDelay),
	}
	r.contents = contents{
		store: cfg.Store, puller: cfg.Puller, secrets: cfg.Secrets, peers: cfg.Peers, fetches: newFetches(r.wakeups.Wake), now: cfg.Now, stored: cfg.Stored,
	}
	r.signatures = cfg.Signatures(r.wakeups.Wake)
	return r, nil
}

// Rejudge has all catalogs looked at, because there are other ImagePolicies than before: also those
// without content, which may have been refused.
func (r *Reconciler) Rejudge(ctx context.Context) {
	if err := r.wakeAll(ctx); err != nil {
		log.FromContext(ctx).Error(err, "catalogs are not judged by other ImagePolicies before their next pass")
	}
}

func (r *Reconciler) wakeAll(ctx context.Context) error {
	var catalogs ocv1.ClusterCatalogList
	if err := r.cfg.Client.List(ctx, &catalogs); err != nil {
		return fmt.Errorf("listing catalogs: %w", err)
	}
	for i := range catalogs.Items {
		r.wakeups.Wake(catalogs.Items[i].Name)
	}
	return nil
}

// SetupWithManager adds the Reconciler to mgr, to run on every replica.
func (r *Reconciler) SetupWithManager(mgr ctrl.Manager) error {
	if err := errors.Join(mgr.Add(everyReplica(r.Collect)), mgr.Add(manager.RunnableFunc(r.Lead)), mgr.Add(r.contents.fetches)); err != nil {
		return err
	}
	return ctrl.NewControllerManagedBy(mgr).
		Named(controllerName).
		For(&ocv1.ClusterCatalog{}).
		WatchesRawSource(&r.wakeups).
		WithOptions(controller.Options{
			NeedLeaderElection:      new(false),
			MaxConcurrentReconciles: MaxStores,
			RateLimiter:             waits(),
		}).
		Complete(requeue.Quietly(r, waits()))
}

// waits are those after errors of passes.
func waits() workqueue.TypedRateLimiter[reconcile.Request] {
	return workqueue.NewTypedItemExponentialFailureRateLimiter[reconcile.Request](minRetryDelay, maxRetryDelay)
}

// Wake has a catalog looked at again. It does not block.
func (r *Reconciler) Wake(catalog string) { r.wakeups.Wake(catalog) }

// everyReplica is run without waiting to lead.
type everyReplica func(context.Context) error

func (run everyReplica) Start(ctx context.Context) error { return run(ctx) }

func (everyReplica) NeedLeaderElection() bool { return false }

// Lead makes the Reconciler the one that decides and writes, beginning with a
// pass over each catalog that there is.
func (r *Reconciler) Lead(ctx context.Context) error {
	r.leads.Store(true)
	return r.wakeAll(ctx)
}

// Collect removes the content of catalogs that are gone. Their deletion is
// seen when it happens; this is for what happened while nobody looked.
func (r *Reconciler) Collect(ctx context.Context) error {
	// Before the list, so that no catalog that comes meanwhile is missed in it.
	names := r.cfg.Store.Names()
	var catalogs ocv1.ClusterCatalogList
	if err := r.cfg.Client.List(ctx, &catalogs); err != nil {
		return fmt.Errorf("listing catalogs: %w", err)
	}
	exists := map[string]bool{}
	for i := range catalogs.Items {
		exists[catalogs.Items[i].Name] = true
	}
	var errs []error
	for _, name := range names {
		if !exists[name] {
			errs = append(errs, r.cfg.Store.Delete(name))
		}
	}
	return errors.Join(errs...)
}

// Reconcile brings one catalog to what its spec says, and its status to what is
// the case; or follows the leader. A pass with nothing to do makes no request and
// writes nothing. Content that cannot be had is told in the status, and is no error
// of the pass: errors are those of the API server and of the disk. A pass whose content
// is on its way ends, and the next one comes with it.
func (r *Reconciler) Reconcile(ctx context.Context, req reconcile.Request) (reconcile.Result, error) {
	catalog := &ocv1.ClusterCatalog{}
	if err := r.cfg.Client.Get(ctx, req.NamespacedName, catalog); err != nil {
		if apierrors.IsNotFound(err) {
			r.gone(req.Name)
			return reconcile.Result{}, r.cfg.Store.Delete(req.Name)
		}
		return reconcile.Result{}, err
	}
	if !r.leads.Load() {
		return r.followed(ctx, catalog.Name, r.follow(ctx, catalog))
	}
	if !catalog.DeletionTimestamp.IsZero() {
		r.gone(catalog.Name)
		return reconcile.Result{}, r.remove(ctx, catalog)
	}
	if catalog.Spec.AvailabilityMode == ocv1.AvailabilityModeUnavailable {
		r.gone(catalog.Name)
		return reconcile.Result{}, r.withdraw(ctx, catalog)
	}
	// The write comes back as an event, which brings the next pass.
	if wrote, err := r.writer.metadata(ctx, catalog, true); wrote || err != nil {
		return reconcile.Result{}, err
	}
	return r.serve(ctx, catalog)
}

// settled is for a catalog that is not, or no longer, tried again.
func (r *Reconciler) settled(catalog string) {
	r.contents.fetches.Abandon(catalog)
	r.retries.Forget(catalog)
	r.answers.forget(catalog)
}

// gone is for a catalog that is not served any more.
func (r *Reconciler) gone(catalog string) {
	r.settled(catalog)
	r.signatures.Forget(catalog)
	r.cfg.Secrets.Forget(catalog)
}

// followed is when to follow again after a try that ended with err. The leader tells
// of what is wrong with a catalog; here it is only logged.
func (r *Reconciler) followed(ctx context.Context, catalog string, err error) (reconcile.Result, error) {
	switch {
	case err == nil:
		r.settled(catalog)
		return reconcile.Result{}, nil
	case errors.Is(err, fetch.ErrPending):
		return reconcile.Result{}, requeue.ErrUnderway
	}
	logger := log.FromContext(ctx)
	if r.retries.NumRequeues(catalog) > 0 {
		logger = logger.V(1)
	}
	logger.Info("the content that the leader serves cannot be had yet", "reason", err.Error())
	return reconcile.Result{RequeueAfter: min(r.retries.When(catalog), maxUnservedDelay)}, nil
}

// write makes status that of the catalog, and tells what is new in it.
func (r *Reconciler) write(ctx context.Context, catalog *ocv1.ClusterCatalog, status *statusWriter) error {
	before := *catalog.Status.DeepCopy()
	if err := r.writer.status(ctx, catalog, status.status); err != nil {
		return err
	}
	r.emit(ctx, catalog, before)
	return nil
}

// remove ends the service of a catalog that is being deleted.
func (r *Reconciler) remove(ctx context.Context, catalog *ocv1.ClusterCatalog) error {
	if !controllerutil.ContainsFinalizer(catalog, ocv1.DeleteServerCacheFinalizer) {
		return nil
	}
	status := newStatus(catalog, r.cfg.Now())
	err := r.cfg.Store.Delete(catalog.Name)
	if err != nil {
		err = fmt.Errorf("finalizer %q failed: %w", ocv1.DeleteServerCacheFinalizer, err)
		status.failed(err, false, failure{err: err}.phase())
	} else {
		status.removed()
	}
	if err := r.write(ctx, catalog, status); err != nil {
		return client.IgnoreNotFound(err)
	}
	if err != nil {
		return err
	}
	wrote, err := r.writer.metadata(ctx, catalog, false)
	if wrote && err == nil {
		log.FromContext(ctx).Info("removed the catalog")
	}
	return err
}

// withdraw ends the service of a catalog that its user made unavailable. There
// is nothing left to clean up then, so its deletion has nothing to wait for.
func (r *Reconciler) withdraw(ctx context.Context, catalog *ocv1.ClusterCatalog) error {
	status := newStatus(catalog, r.cfg.Now())
	err := r.cfg.Store.Delete(catalog.Name)
	if err != nil {
		status.failed(err, false, failure{err: err}.phase())
	} else {
		status.withdrawn()
	}
	if err := r.write(ctx, catalog, status); err != nil {
		return err
	}
	if err != nil {
		return err
	}
	_, err = r.writer.metadata(ctx, catalog, false)
	return err
}

// serve makes the store hold the wanted content, and the status tell what it
// holds.
func (r *Reconciler) serve(ctx context.Context, catalog *ocv1.ClusterCatalog) (reconcile.Result, error) {
	want, err := wantedOf(catalog)
	if err != nil {
		r.contents.fetches.Abandon(catalog.Name)
	} else {
		err = r.obtain(ctx, catalog, want, r.cfg.Now())
	}
	switch {
	case errors.Is(err, fetch.ErrPending):
		return reconcile.Result{}, requeue.ErrUnderway
	case errors.Is(err, errAnnouncement):
		return reconcile.Result{}, err
	}
	now := r.cfg.Now() // to store it takes its time
	held, ok := r.cfg.Store.Record(catalog.Name)
	status, base := newStatus(catalog, now), r.external.JoinPath("catalogs", catalog.Name).String()
	r.judge(ctx, catalog, held.Canonical, ok, status)
	if err == nil {
		r.settled(catalog.Name)
		status.served(held, base)
		if err := r.write(ctx, catalog, status); err != nil {
			return reconcile.Result{}, err
		}
		return reconcile.Result{RequeueAfter: want.wait(held, now, r.cfg.Random())}, nil
	}
	why := failure{
		err: err, blocked: blocked(err, want), held: held.Canonical, ofTheSameSpec: held.Source == want.ref,
		lasting: r.answers.lasting(catalog, err, now),
	}
	origin, isPublished := published(catalog)
	if !ok && isPublished {
		why.published, why.ofTheSameSpec = origin.Canonical, origin.Source == want.ref
	}
	where := why.phase()
	status.failed(err, why.blocked, where)
	switch {
	case ok:
		status.stillServed(held, base)
	case !isPublished:
		status.notServed()
	default: // other replicas may serve it, and this one is to
	}
	// A status that could not be written has to be, whatever else happened.
	if err := r.write(ctx, catalog, status); err != nil {
		return reconcile.Result{}, err
	}
	if why.blocked {
		return reconcile.Result{}, nil
	}
	if _, ok := errors.AsType[*pullsecret.SecretError](err); ok && why.published == "" {
		// Its next change brings the next try; until then there is only the time to tell of.
		// What other replicas may have takes none of it.
		return reconcile.Result{RequeueAfter: where.remaining}, nil
	}
	wait := r.retryIn(catalog.Name, want, ok)
	if where.remaining > 0 {
		wait = min(wait, where.remaining)
	}
	return reconcile.Result{RequeueAfter: wait}, nil
}

// judge has the status say what ImagePolicies make of what is held. While that is not known, it says
// what it did.
func (r *Reconciler) judge(ctx context.Context, catalog *ocv1.ClusterCatalog, canonical string, held bool, status *statusWriter) {
	if !held {
		r.signatures.Forget(catalog.Name)
		status.unjudged()
		return
	}
	made, known, err := r.signatures.Of(ctx, verdict.InUse{
		Who: catalog.Name, Author: catalog.Name, Image: image.Request{Ref: canonical, Select: image.CatalogContent},
		Verify: r.contents.verify(pullsOf(catalog), canonical),
	})
	switch {
	case err != nil:
		status.judgementFailed(err)
	case known:
		status.judged(made)
	}
}

// retryIn is how long to wait after another failure: not longer than if there had been none,
// and less long while nothing is held that can be served.
func (r *Reconciler) retryIn(catalog string, want wanted, held bool) time.Duration {
	wait := r.retries.When(catalog)
	if !held {
		wait = min(wait, maxUnservedDelay)
	}
	if want.interval > 0 {
		wait = min(wait, want.interval)
	}
	return wait
}

// errAnnouncement says that the API server could not be told what begins.
var errAnnouncement = errors.New("announcing a pull")

// obtain makes the store hold what is wanted. A replica that has just been started may lack
// what is served: it gets that first, and tells nobody, because nothing has changed for
// anyone. The error is errAnnouncement, or as with contents.ensure.
func (r *Reconciler) obtain(ctx context.Context, catalog *ocv1.ClusterCatalog, want wanted, now time.Time) error {
	ctx, cancel := context.WithTimeout(ctx, storeTimeout)
	defer cancel()
	origin, isPublished := published(catalog)
	if _, held := r.cfg.Store.Record(catalog.Name); !held && isPublished {
		if err := r.contents.restore(ctx, catalog.Name, origin, want, now); err != nil {
			return err
		}
	}
	secrets := r.contents.check(want.catalog)
	if secrets != nil && !errors.Is(secrets, fetch.ErrPending) {
		return secrets
	}
	if err := r.announce(ctx, catalog, want, now); err != nil {
		return fmt.Errorf("%w: %w", errAnnouncement, err)
	}
	if secrets != nil {
		return secrets
	}
	return r.contents.ensure(ctx, catalog.Name, want, now)
}

// announce tells, before a pull that may take long, that there will be one. A look
// whether there is newer content of the same source is not worth a word, nor is
// another try.
func (r *Reconciler) announce(ctx context.Context, catalog *ocv1.ClusterCatalog, want wanted, now time.Time) error {
	held, ok := r.cfg.Store.Record(catalog.Name)
	if ok && held.Source == want.ref || isReported(catalog) {
		return nil
	}
	r.retries.Forget(catalog.Name) // another spec need not wait for what became of the one before
	status := newStatus(catalog, now)
	status.pulling(want.ref)
	return r.write(ctx, catalog, status)
}
