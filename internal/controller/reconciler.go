package controller

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requeue"
	"github.com/clusterextensions/operator-controller/internal/turn"
)

// passDeadline bounds one pass over one extension. Images are not waited for in it.
const passDeadline = 10 * time.Minute

// concludeTimeout is for what a pass came to that has used up its own time.
const concludeTimeout = 30 * time.Second

// removalRecheck is when to look again at an extension that turned out to be on its
// way out before its deletion was heard of.
const removalRecheck = time.Second

// Reconciler brings ClusterExtensions to what their specs want.
type Reconciler struct {
	Client    client.Client
	Releases  Releases
	Deletions Deletions
	Bundles   Bundles
	Catalogs  Catalogs
	Platform  Platform
	Events    Events
	Metrics   *Metrics

	// Turns are those of large extensions.
	Turns *turn.Turns

	// Certificates says who issues certificates for webhooks on this cluster. It
	// may have to ask the cluster.
	Certificates func() (bundle.CertificateProvider, error)

	// Forget drops what the process holds for an extension that is gone.
	Forget func(ctx context.Context, extension string)

	// Now is the clock.
	Now func() time.Time

	// concluded has the status that the last pass over each extension came to, and
	// announced the one that a pass has written before it was over.
	concluded, announced sync.Map

	// removals are the extensions that are being deleted.
	removals removals

	// efforts has those of each extension.
	efforts sync.Map

	// backoff is how long to wait after what the status tells of, see
	// [requeue.Quietly].
	backoff *backoff

	// denied are the extensions whose last pass lacked rights.
	denied sync.Map

	// unserved are the extensions whose last pass lacked kinds; issuerGone has since
	// when that was so of those of who issues certificates.
	unserved, issuerGone sync.Map

	// repairs are those that are still to be told.
	repairs repairLog

	// pulls are those that extensions wait for, of which some have come to files.
	pulls     sync.Map
	keptFiles atomic.Int64

	// strandedSince has for extensions between two revisions when a pass first
	// could not go on.
	strandedSince sync.Map
}

// Reconcile makes one pass over one extension: read, decide, act, and tell the
// outcome in the status. A pass whose image is on its way, or whose turn it is not, ends
// before it has come to anything; the status tells of what is under way, and the next one
// goes on with it.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passDeadline)
	defer cancel()

	ext := &ocv1.ClusterExtension{}
	if err := r.Client.Get(ctx, req.NamespacedName, ext); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(ctx, req.Name)
			r.Turns.Forget(req.Name)
			r.Deletions.EndDeletion(req.Name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	ctx, endTurn := r.Turns.Begin(ctx, ext.Name, ext.Spec.Namespace)
	defer endTurn()
	if !ext.DeletionTimestamp.IsZero() {
		return r.finalize(ctx, ext)
	}
	if wanted := missingFinalizers(ext); wanted != nil {
		return ctrl.Result{}, r.writeFinalizers(ctx, ext, wanted)
	}

	ctx, end := r.removals.begin(ctx, ext.UID)
	defer end()
	wanted, invalid := translate(ext)
	announced := &announcement{reconciler: r, ext: ext}
	outcome := r.pass(ctx, wanted, invalid, announced)
	if outcome.ownerGone() || errors.Is(context.Cause(ctx), object.ErrOwnerGone) {
		return afterRemoval, nil
	}
	if err := announced.failure(); err != nil {
		return ctrl.Result{}, err
	}
	if outcome.Waiting {
		return ctrl.Result{RequeueAfter: outcome.RecheckAfter}, requeue.ErrUnderway
	}
	r.abandonPull(ext.Name)
	if errors.Is(ctx.Err(), context.DeadlineExceeded) { // which is to be told too
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(context.WithoutCancel(ctx), concludeTimeout)
		defer cancel()
	}
	result, err := r.conclude(ctx, announced.extension(), outcome)
	if err != nil && errors.Is(context.Cause(ctx), object.ErrOwnerGone) {
		return afterRemoval, nil
	}
	return result, err
}

// afterRemoval is for a pass that the deletion of its extension has ended. The event of
// that brings the next one; this is in case that it is late.
var afterRemoval = ctrl.Result{RequeueAfter: removalRecheck}

// conclude tells what a pass came to, and says when the next one is.
func (r *Reconciler) conclude(ctx context.Context, ext *ocv1.ClusterExtension, outcome Outcome) (ctrl.Result, error) {
	// No later pass knows these, whatever becomes of the status.
	r.tell(ext, notesOf(outcome.Notes))
	logChanges(ctx, outcome)
	r.noteRights(ext.Name, outcome)
	r.noteKinds(ext.Name, outcome)
	verdict := classify(outcome)
	now := r.Now()
	phase := phaseOf(ext, outcome, verdict, r.effortsOf(ext.Name), now)
	r.efforts.Store(ext.Name, phase.efforts)
	status := statusOf(ext, outcome, verdict, phase, now)
	r.concluded.Store(ext.Name, status.DeepCopy())
	if _, err := r.writeStatus(ctx, ext, status); err != nil {
		return ctrl.Result{}, err
	}
	r.Metrics.passed(ext.Name, outcome, verdict, status)
	news := transitionOf(&ext.Status, status)
	r.tell(ext, news)
	r.tell(ext, moveOf(outcome.Moved))
	logReason(ctx, outcome, news != nil)
	result, err := resultOf(outcome, verdict, phase)
	repaired, wait := r.repairs.note(ext.Name, textsOf(outcome.Repair.Restored()), now)
	r.tell(ext, repaired)
	result.RequeueAfter = sooner(result.RequeueAfter, wait)
	if err != nil {
		r.backoff.failed(requestFor(ext.Name), ext.Generation, causeOf(outcome.Stage, err))
		r.backoff.dueIn(requestFor(ext.Name), phase.remaining)
	}
	return result, err
}

func (r *Reconciler) forget(ctx context.Context, extension string) {
	r.abandonPull(extension)
	r.Forget(ctx, extension)
	r.concluded.Delete(extension)
	r.announced.Delete(extension)
	r.efforts.Delete(extension)
	r.denied.Delete(extension)
	r.unserved.Delete(extension)
	r.issuerGone.Delete(extension)
	r.strandedSince.Delete(extension)
	r.repairs.forget(extension)
	r.Metrics.forget(extension)
}

// effortsOf gives those that no process remembers as zero.
func (r *Reconciler) effortsOf(extension string) efforts {
	known, _ := r.efforts.Load(extension)
	found, _ := known.(efforts)
	return found
}

// measure begins the time that a stage takes; what it returns ends it.
func (r *Reconciler) measure(stage Stage) (end func()) {
	began := r.Now()
	return func() { r.Metrics.took(stage, r.Now().Sub(began)) }
}
