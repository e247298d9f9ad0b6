package controller

import (
	"context"
	"errors"
	"sync"
	"sync/atomic"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
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

// concludeTimeout bounds the status write of a pass whose deadline has passed.
const concludeTimeout = 30 * time.Second

// removalRecheck is when the next pass comes if an extension turned out to be deleted
// before the event of its deletion.
const removalRecheck = time.Second

// Reconciler brings ClusterExtensions to what their specs want.
type Reconciler struct {
	Client     client.Client
	Releases   Releases
	Deletions  Deletions
	Uninstalls Uninstalls
	Bundles    Bundles
	Catalogs   Catalogs
	Neighbours *Neighbours
	Platform   Platform
	Events     Events
	Metrics    *Metrics

	// Turns are those of large extensions, and ChartTurns those of charts.
	Turns, ChartTurns *turn.Turns

	// Certificates says who issues certificates for webhooks on this cluster. It
	// may have to ask the cluster.
	Certificates func() (bundle.CertificateProvider, error)

	// Charts renders the templates of charts, for as long as a pass takes, and ServedAPIs are
	// what these get to know of the cluster, as [bundle.ChartRelease] has them. It fails as
	// long as they are not known.
	Charts     func(context.Context) bundle.ChartEngine
	ServedAPIs func() ([]string, error)

	// Lookup answers templates that look at the cluster for an extension; nil where nobody does.
	Lookup func(owner object.Owner) (bundle.ChartLookup, error)

	// SharedPods returns the Services among objects that select pods of others, as [bundle.Shared]
	// does. With nil objects it uses the objects of the installed revision. It may be nil.
	SharedPods func(ctx context.Context, owner object.Owner, objects []*unstructured.Unstructured) ([]bundle.SharedService, error)

	// Forget drops what the process holds for an extension that is being deleted, or gone.
	Forget func(ctx context.Context, extension string)

	// MinReady is how long workloads have to stay available before an extension is Ready;
	// zero for no time.
	MinReady time.Duration

	// UninstallPolicy is that of extensions whose spec has none; empty for UninstallDelete.
	UninstallPolicy UninstallPolicy

	// Now is the clock.
	Now func() time.Time

	// After calls do when some time has passed, unless it is stopped before.
	After func(wait time.Duration, do func()) (stop func() bool)

	// judgements has the last verdict of ImagePolicies on what each extension has installed, and
	// signatures what was told last of that in an event.
	judgements, signatures sync.Map

	// reasons has why the last pass over each extension left the world as it is, as it
	// was logged. cohorts has whom that is common to.
	reasons sync.Map
	cohorts *cohorts

	// concluded has the status that the last pass over each extension came to, and
	// announced the one that a pass has written before it was over, while it may still come
	// to be known. See statusDiffers.
	concluded, announced sync.Map

	// removals ends the pass over an extension when its deletion begins, and has what is
	// known of extensions that are being deleted.
	removals removals

	// efforts has, for each extension, since when passes have tried in vain to get further.
	efforts sync.Map

	// backoff is how long to wait after what the status tells of, see
	// [requeue.Quietly]. holds are tries that are not made meanwhile.
	backoff *backoff
	holds   *holds

	// wake asks for a pass over an extension that has failed.
	wake func(extension string)

	// denied are the extensions that lacked rights in their last pass.
	denied sync.Map

	// missingNamespaces has for extensions the namespaces of objects that were lacking in their
	// last pass.
	missingNamespaces sync.Map

	// unserved are the extensions whose last pass lacked kinds. issuerGone has, for each
	// extension, since when the kinds of its issuer of certificates are lacking.
	unserved, issuerGone sync.Map

	// answers has what the last pass over each extension was told of the cluster.
	answers sync.Map

	// prospects has what pending upgrades would do.
	prospects sync.Map

	// namespaceUses maps each extension to the Namespaces that block its deletion.
	namespaceUses sync.Map

	// leftovers maps each extension to the fields that its adopted objects keep.
	leftovers sync.Map

	// sharings maps each extension to the last result of SharedPods.
	sharings sync.Map

	// repairs are the repaired objects that no event has named yet.
	repairs repairLog

	// named has what the image was found to be that the spec of an extension names.
	named sync.Map

	// pulls has the pull that each extension waits for, or its files, of which there are
	// keptFiles.
	pulls     sync.Map
	keptFiles atomic.Int64

	// began is when the first pass was made; nil before it.
	began atomic.Pointer[time.Time]

	// slow are the extensions over which the last pass took [slowPass].
	slow sync.Map

	// unfinishedSince has for extensions between two revisions when a pass first
	// could not go on.
	unfinishedSince sync.Map

	// fresh maps each extension with a missing prerequisite to its [freshSpec].
	fresh sync.Map
}

// Reconcile makes one pass over one extension: it reads, decides, acts, and writes the
// status. A pass ends early if its image is still being pulled, or if the extension is
// large or slow and it is not its turn. The status says what is under way, and the next pass goes
// on with it.
func (r *Reconciler) Reconcile(ctx context.Context, req ctrl.Request) (ctrl.Result, error) {
	ctx, cancel := context.WithTimeout(ctx, passDeadline)
	defer cancel()

	r.holds.begin(req.Name)
	ext := &ocv1.ClusterExtension{}
	if err := r.Client.Get(ctx, req.NamespacedName, ext); err != nil {
		if apierrors.IsNotFound(err) {
			r.forget(ctx, req.Name)
			r.Turns.Forget(req.Name)
			r.ChartTurns.Forget(req.Name)
			r.slow.Delete(req.Name)
			r.Deletions.EndDeletion(req.Name)
		}
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	ctx, endTurn := r.Turns.Begin(ctx, ext.Name, ext.Spec.Namespace)
	defer endTurn()
	ctx, endChartTurn := r.ChartTurns.Begin(ctx, ext.Name, ext.Spec.Namespace)
	defer endChartTurn()
	defer r.timePass(ctx, ext.Name)()
	if !ext.DeletionTimestamp.IsZero() {
		if r.takeTurnIfSlow(ctx, ext.Name) != nil {
			return r.waitToDelete(ctx, ext)
		}
		return r.finalize(ctx, ext)
	}
	if wanted := wantedFinalizers(ext, uninstallPolicyOf(ext, r.UninstallPolicy)); wanted != nil {
		return ctrl.Result{}, r.writeFinalizers(ctx, ext, wanted)
	}

	return r.attend(ctx, ext)
}

// attend makes the pass over an extension that is to stay.
func (r *Reconciler) attend(ctx context.Context, ext *ocv1.ClusterExtension) (ctrl.Result, error) {
	ctx, end := r.removals.begin(ctx, ext.UID)
	defer end()
	if r.isSuspendedSince(ctx, ext) {
		return ctrl.Result{RequeueAfter: atOnce}, nil
	}
	r.recallTakenBack(ext)
	wanted, invalid := translate(ext)
	wanted.Owner.Adopts = r.adoptedBy(ctx, ext)
	announced := &announcement{reconciler: r, ext: ext}
	outcome := r.pass(ctx, wanted, invalid, announced)
	logChanges(ctx, outcome)
	if outcome.ownerGone() || errors.Is(context.Cause(ctx), object.ErrOwnerGone) {
		return afterRemoval, nil
	}
	r.Metrics.worked(ext.Name, outcome)
	outcome.RecheckAfter = sooner(outcome.RecheckAfter, r.noteRepair(ext, outcome))
	if errors.Is(context.Cause(ctx), errSuspended) {
		return ctrl.Result{RequeueAfter: atOnce}, nil
	}
	if err := announced.failure(); err != nil {
		return ctrl.Result{}, err
	}
	if outcome.Waiting {
		return ctrl.Result{RequeueAfter: outcome.RecheckAfter}, requeue.ErrUnderway
	}
	if wait := r.awaitsFresh(ext, outcome); wait > 0 {
		return ctrl.Result{RequeueAfter: wait}, requeue.ErrUnderway
	}
	if !outcome.Foreseeing {
		r.abandonPull(ext.Name)
	}
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

// afterRemoval is the result of a pass that ended because its extension is deleted. The
// event of the deletion brings the next pass; this is in case that it is late.
var afterRemoval = ctrl.Result{RequeueAfter: removalRecheck}

// conclude writes the status and emits the events of a pass, and says when the next one is.
func (r *Reconciler) conclude(ctx context.Context, ext *ocv1.ClusterExtension, outcome Outcome) (ctrl.Result, error) {
	// No later pass knows these, whatever becomes of the status.
	r.noteLeftovers(&outcome)
	r.emit(ext, notesOf(outcome.Notes))
	r.emit(ext, keptOf(releasedBy(outcome.Applied), nil))
	r.noteRights(ext.Name, outcome)
	r.noteNamespaces(ctx, ext.Name, outcome)
	r.noteKinds(ext.Name, outcome)
	r.noteNeeds(ext.Name, outcome)
	verdict := classify(outcome)
	now := r.Now()
	phase := phaseOf(ext, outcome, verdict, r.effortsOf(ext.Name), now)
	r.efforts.Store(ext.Name, phase.efforts)
	status := statusOf(ext, outcome, verdict, phase, now)
	r.concluded.Store(ext.Name, status.DeepCopy())
	member := r.cohorts.met(ext.Name, attemptOf(ext, outcome, verdict))
	for _, other := range member.next {
		r.wake(other)
	}
	r.noteFailure(ext, outcome, verdict, member)
	written, err := r.writeStatus(ctx, ext, status)
	if err != nil {
		return ctrl.Result{}, err
	}
	r.Metrics.passed(ext.Name, outcome, verdict, status)
	r.emit(ext, transitionOf(&ext.Status, status))
	r.emit(ext, moveOf(outcome.Moved))
	r.emit(ext, r.signaturesTransition(ext, outcome))
	r.logReason(ctx, ext.Name, outcome, member)
	result, err := resultOf(outcome, verdict, phase)
	if written == ext && r.wasBehind(ctx, ext) {
		result.RequeueAfter = atOnce
	}
	return result, err
}

// noteRepair tells of what a pass has put back, in an event. No later pass
// knows of it, whatever this one waits for and whatever becomes of the status. It gives how
// long the event has to wait; zero if there is none that has to.
func (r *Reconciler) noteRepair(ext *ocv1.ClusterExtension, outcome Outcome) (wait time.Duration) {
	event, wait := r.repairs.note(ext.Name, textsOf(outcome.Repair.Restored()), r.Now())
	r.emit(ext, event)
	return wait
}

// noteFailure notes what came of a pass for when the next one comes, and for what that one
// need not try.
func (r *Reconciler) noteFailure(ext *ocv1.ClusterExtension, outcome Outcome, v verdict, member membership) {
	forward, repair := work{extension: ext.Name}, work{extension: ext.Name, isRepair: true}
	if outcome.RepairErr != nil {
		r.backoff.failed(repair, failedRepairOf(ext.Generation, outcome))
	} else {
		r.backoff.succeeded(repair)
	}
	if outcome.Held {
		r.noteHeld(forward, outcome, v)
		return
	}
	var next time.Time
	if v.isRetried() && outcome.Stage != StageRepair {
		next = r.backoff.failed(forward, failureOf(ext.Generation, outcome, v, member))
	} else {
		r.backoff.succeeded(forward)
	}
	switch {
	case outcome.Err == nil && outcome.isPendingTarget():
		r.holds.put(ext.Name, holdOfPending(ext, outcome))
	case isForward(outcome.Stage):
		r.holds.put(ext.Name, holdOf(ext, outcome, v, next, r.Now()))
		if r.refusedOtherwise()(ext) { // since then, which was told too early for this
			r.wake(ext.Name)
		}
	case outcome.Err == nil && outcome.Target.NoOffer != nil: // nor to what the hold is about
	case outcome.Err == nil || outcome.Stage == StageRepair:
		r.holds.forget(ext.Name)
	default: // it did not come to what the hold is about
	}
}

// noteHeld is for a pass that has tried nothing: the next try comes when the last one has
// said, whatever passes have met meanwhile that did not come as far.
func (r *Reconciler) noteHeld(forward work, outcome Outcome, v verdict) {
	switch until := r.holds.until(forward.extension); {
	case !until.IsZero():
		r.backoff.plan(forward, until)
	case v.isRetried() && outcome.RepairErr == nil:
		r.holds.forget(forward.extension) // nobody tells any more of what the hold waits for
	}
}

func (r *Reconciler) forget(ctx context.Context, extension string) {
	r.abandonPull(extension)
	r.Forget(ctx, extension)
	r.concluded.Delete(extension)
	r.announced.Delete(extension)
	r.efforts.Delete(extension)
	r.denied.Delete(extension)
	r.missingNamespaces.Delete(extension)
	r.unserved.Delete(extension)
	r.answers.Delete(extension)
	r.Neighbours.ofContent.Delete(extension)
	r.issuerGone.Delete(extension)
	r.unfinishedSince.Delete(extension)
	r.fresh.Delete(extension)
	r.repairs.forget(extension)
	r.reasons.Delete(extension)
	r.cohorts.forget(extension)
	r.holds.forget(extension)
	r.prospects.Delete(extension)
	r.sharings.Delete(extension)
	r.leftovers.Delete(extension)
	r.namespaceUses.Delete(extension)
	r.named.Delete(extension)
	r.judgements.Delete(extension)
	r.signatures.Delete(extension)
	r.Metrics.forget(extension)
}

// effortsOf gives zero for an extension of which this process remembers none.
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
