package controller

import (
	"context"
	"slices"
	"sync"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/util/workqueue"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/event"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// orphanWait is how long the deletion of an extension waits for its content to be
// orphaned if that fails. Its ServiceAccount may be gone for good.
const orphanWait = time.Minute

// orphanRetry is the time between two tries.
const orphanRetry = 5 * time.Second

// removals is what is known of extensions that are being deleted, as soon as it is
// heard of them: a pass may be under way then, and whether their content is to stay is
// not to be read from their finalizers later.
type removals struct {
	mu      sync.Mutex
	passes  map[types.UID]context.CancelCauseFunc
	orphans map[types.UID]struct{}

	// tried is when the first try was made to orphan the content of each, and unregistering when
	// it was first tried to delete its API services.
	tried, unregistering map[types.UID]time.Time

	// hookless are those of which it was told that their hooks are not run.
	hookless map[types.UID]struct{}

	// repairs has of each what the last repair came to while its deletion was held up.
	repairs map[types.UID]failedRepair

	// reported has of each how many objects are deleted with it, less than zero if that is
	// not known, after an event has said what is deleted. That is looked up once.
	reported map[types.UID]int
}

// begin is for a pass over an extension. What it returns ends it.
func (r *removals) begin(ctx context.Context, extension types.UID) (context.Context, func()) {
	ctx, cancel := context.WithCancelCause(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.passes == nil {
		r.passes = map[types.UID]context.CancelCauseFunc{}
	}
	r.passes[extension] = cancel
	return ctx, func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		delete(r.passes, extension)
		cancel(nil)
	}
}

// note ends the pass over an extension that is being deleted: nothing more is to be
// written for it, and nothing to be waited for.
func (r *removals) note(extension client.Object) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel, running := r.passes[extension.GetUID()]; running {
		cancel(object.ErrOwnerGone)
	}
	if isOrphaning(extension) {
		r.addOrphans(extension.GetUID())
	}
}

// markOrphaning is for an extension whose content is to stay, of which this process has
// not heard while it could be seen.
func (r *removals) markOrphaning(extension types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.addOrphans(extension)
}

// addOrphans is called with the lock held.
func (r *removals) addOrphans(extension types.UID) {
	if r.orphans == nil {
		r.orphans = map[types.UID]struct{}{}
	}
	r.orphans[extension] = struct{}{}
}

// leavesOrphans says that the content of an extension that is being deleted is to
// stay. A process that has started since reads that from what the one before has told.
func (r *removals) leavesOrphans(extension *ocv1.ClusterExtension) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, found := r.orphans[extension.UID]
	told := meta.FindStatusCondition(extension.Status.Conditions, ocv1.TypeReady)
	return found || told != nil && told.Reason == ocv1.ReasonOrphaning
}

func (r *removals) forget(extension types.UID) {
	r.mu.Lock()
	defer r.mu.Unlock()
	delete(r.orphans, extension)
	delete(r.reported, extension)
	delete(r.tried, extension)
	delete(r.unregistering, extension)
	delete(r.hookless, extension)
	delete(r.repairs, extension)
}

// failedRepair is why the content of an extension could not be looked after while its
// deletion was held up, and when to try again. There is no error if it could.
type failedRepair struct {
	installed *installation.Revision
	err       error
	next      time.Time
}

func (r *removals) lastRepair(extension types.UID) failedRepair {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.repairs[extension]
}

func (r *removals) noteRepair(extension types.UID, repair failedRepair) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.repairs == nil {
		r.repairs = map[types.UID]failedRepair{}
	}
	r.repairs[extension] = repair
}

// isReported says how many objects are deleted with an extension, and whether an event has
// said what is deleted.
func (r *removals) isReported(extension types.UID) (objects int, reported bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	objects, reported = r.reported[extension]
	return objects, reported
}

func (r *removals) markReported(extension types.UID, objects int) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.reported == nil {
		r.reported = map[types.UID]int{}
	}
	r.reported[extension] = objects
}

// firstTry is when it was first tried to orphan the content of an extension.
func (r *removals) firstTry(extension types.UID, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return firstIn(&r.tried, extension, now)
}

// firstUnregistering is when it was first tried to delete the API services of an extension.
func (r *removals) firstUnregistering(extension types.UID, now time.Time) time.Time {
	r.mu.Lock()
	defer r.mu.Unlock()
	return firstIn(&r.unregistering, extension, now)
}

// firstIn is the time that was given first for an extension.
func firstIn(times *map[types.UID]time.Time, extension types.UID, now time.Time) time.Time {
	if *times == nil {
		*times = map[types.UID]time.Time{}
	}
	if _, found := (*times)[extension]; !found {
		(*times)[extension] = now
	}
	return (*times)[extension]
}

// isOrphaning says that the garbage collector is taking the extension off its content.
func isOrphaning(extension metav1.Object) bool {
	return extension.GetDeletionTimestamp() != nil && slices.Contains(extension.GetFinalizers(), metav1.FinalizerOrphanDependents)
}

// handler hears of extensions that are being deleted, and wakes nobody: the pass over
// them is the business of others.
func (r *removals) handler() handler.EventHandler {
	return handler.Funcs{
		CreateFunc: func(_ context.Context, e event.CreateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			r.noteIfDeleted(e.Object)
		},
		UpdateFunc: func(_ context.Context, e event.UpdateEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			r.noteIfDeleted(e.ObjectNew)
			r.noteIfSuspended(e.ObjectOld, e.ObjectNew)
		},
		DeleteFunc: func(_ context.Context, e event.DeleteEvent, _ workqueue.TypedRateLimitingInterface[reconcile.Request]) {
			r.note(e.Object)
			r.forget(e.Object.GetUID())
		},
	}
}

// noteIfSuspended ends the pass over an extension that was just suspended, as far as it has
// come: the next one is about what the spec says now.
func (r *removals) noteIfSuspended(before, after client.Object) {
	was, isExtension := before.(*ocv1.ClusterExtension)
	is, isStillExtension := after.(*ocv1.ClusterExtension)
	if !isExtension || !isStillExtension || was.Spec.Suspend || !is.Spec.Suspend {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if cancel, running := r.passes[is.UID]; running {
		cancel(errSuspended)
	}
}

func (r *removals) noteIfDeleted(extension client.Object) {
	if extension.GetDeletionTimestamp() != nil {
		r.note(extension)
	}
}

// orphan has the content of an extension whose content is to stay checked, after the
// garbage collector is done with it and while the extension is still there. If it fails,
// wait is for how long it is worth to try again: zero if it is given up, which is not done
// where the uninstall policy protects content. With [turn.ErrWait] it was not tried.
func (r *Reconciler) orphan(ctx context.Context, ext *ocv1.ClusterExtension, policy UninstallPolicy) (wait time.Duration, err error) {
	if policy == UninstallOrphan || !r.removals.leavesOrphans(ext) || !slices.ContainsFunc(ext.Finalizers, isOurs) {
		return 0, nil // or it was done as the policy says
	}
	wanted, _ := translate(ext)
	err = r.Deletions.Orphan(ctx, wanted.Owner)
	if err == nil || isQueued(err) {
		return 0, err
	}
	if policy != UninstallDelete {
		return orphanWait, err
	}
	return max(0, orphanWait-r.Now().Sub(r.removals.firstTry(ext.UID, r.Now()))), err
}

// skipsHooks says whether it was told before that the hooks of an extension are not run. It is from
// now on.
func (r *removals) skipsHooks(extension types.UID) (told bool) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if r.hookless == nil {
		r.hookless = map[types.UID]struct{}{}
	}
	_, told = r.hookless[extension]
	r.hookless[extension] = struct{}{}
	return told
}

// isHookless says that it was told that the hooks of an extension are not run.
func (r *removals) isHookless(extension types.UID) bool {
	r.mu.Lock()
	defer r.mu.Unlock()
	_, told := r.hookless[extension]
	return told
}
