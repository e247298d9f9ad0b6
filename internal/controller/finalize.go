package controller

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/requeue"
)

// finalizers are those of the reference implementation. They guard what this process
// holds for an extension, and content that is to stay: the extension is there until
// none of that names it, see [Reconciler.orphan]. Content that is to go is owned by the
// ClusterExtension and goes with it, whether or not the ServiceAccount still exists.
var finalizers = []string{ocv1.CleanupUnpackCacheFinalizer, ocv1.CleanupContentManagerCacheFinalizer}

const (
	// deletionTimeout bounds what is read before an extension goes; it holds up the
	// deletion.
	deletionTimeout = 10 * time.Second

	// remainingDelay is what deletions take that nothing holds up; remainingInterval
	// is how often to look after that at what has not gone yet.
	remainingDelay    = 5 * time.Second
	remainingInterval = 15 * time.Second
)

// finalize removes our finalizers from an extension that is being deleted, and writes to
// the status what the deletion waits for. Finalizers of others are theirs to remove. That
// of the garbage collector, which orphans content that is to stay, is waited for.
func (r *Reconciler) finalize(ctx context.Context, ext *ocv1.ClusterExtension) (ctrl.Result, error) {
	r.cohorts.forget(ext.Name)
	r.holds.forget(ext.Name)
	wanted, _ := translate(ext)
	left := slices.DeleteFunc(slices.Clone(ext.Finalizers), isOurs)
	if len(left) < len(ext.Finalizers) {
		return r.endDeletion(ctx, ext, wanted, left)
	}
	policy := uninstallPolicyOf(ext, r.UninstallPolicy)
	if progress := r.uninstallLate(ctx, ext, wanted, policy); !progress.released {
		return r.holdDeletion(ctx, ext, progress)
	}
	var remaining []string
	var err error
	wait := timeToLook(ext, left, r.Now())
	if isForeground(left) && wait == 0 {
		remaining, err = r.Deletions.Remaining(ctx, wanted.Owner)
		wait = remainingInterval
	}
	text := terminatingText(left, remaining, err)
	if policy == UninstallRefuseWhileInUse && len(heldByOthers(left)) > 0 {
		text = excerpt.Line(text, maxText-maxPart) + tooLateText
	}
	_, err = r.writeTerminating(ctx, ext, ocv1.ReasonTerminating, text)
	return ctrl.Result{RequeueAfter: wait}, client.IgnoreNotFound(err)
}

// tooLateText is for a deletion that was let go of before its policy was to hold it.
const tooLateText = "; then custom resources go too: spec.uninstall was set too late to refuse that, but can still keep them"

// endDeletion removes our finalizers, after everything that has to be done or told
// before.
func (r *Reconciler) endDeletion(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, left []string) (ctrl.Result, error) {
	if isOrphaning(ext) {
		r.forget(ctx, ext.Name)
		_, err := r.writeTerminating(ctx, ext, ocv1.ReasonOrphaning, terminatingText(left, nil, nil))
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	policy := uninstallPolicyOf(ext, r.UninstallPolicy)
	stay, err := r.leavesContent(ctx, ext, wanted)
	var unclaimed *transition
	if err == nil && (!stay || policy == UninstallOrphan) {
		progress := r.uninstallAmongOthers(ctx, ext, wanted, policy, left)
		if !progress.released {
			return r.holdDeletion(ctx, ext, progress)
		}
		unclaimed = progress.unclaimed
		stay = policy == UninstallOrphan
	}
	objects, told := r.removals.isReported(ext.UID)
	if err == nil && !stay && !told {
		if objects, err = r.warnDeletion(ctx, ext, wanted, policy); err == nil {
			r.emit(ext, unclaimed)
			r.removals.markReported(ext.UID, objects)
		}
	}
	switch {
	case isQueued(err):
		return r.waitToDelete(ctx, ext)
	case err != nil:
		_, err = r.writeTerminating(ctx, ext, ocv1.ReasonTerminating, undecidedText(err))
		return ctrl.Result{RequeueAfter: remainingInterval}, client.IgnoreNotFound(err)
	}
	r.forget(ctx, ext.Name)
	wait, err := r.orphan(ctx, ext, policy)
	switch {
	case isQueued(err):
		return r.waitToDelete(ctx, ext)
	case wait > 0:
		return r.holdOrphans(ctx, ext, policy, stillOwnedText(err), min(wait, orphanRetry))
	case err != nil:
		r.emit(ext, &transition{kind: corev1.EventTypeWarning, reason: eventNotLetGo, note: notLetGoText(err)})
	}
	return r.letGo(ctx, ext, wanted, left, departure{objects: objects, stay: stay, policy: policy, isInstalled: ext.Status.Install != nil})
}

// holdOrphans tells why an extension stays whose content is to stay, and could not be let go
// of. Where the uninstall policy protects content that is not given up, so that somebody has to
// act. The reason is the same then: a process that starts later reads from it that content is
// to stay.
func (r *Reconciler) holdOrphans(ctx context.Context, ext *ocv1.ClusterExtension, policy UninstallPolicy, text string, wait time.Duration) (ctrl.Result, error) {
	status := terminating(ext, uninstallProgress{reason: ocv1.ReasonOrphaning, text: text}, r.Now())
	if policy != UninstallDelete && !r.isPatient(ext) {
		status, wait = stalledOf(status), uninstallRetry
	}
	_, err := r.writeHeld(ctx, ext, status)
	return ctrl.Result{RequeueAfter: wait}, client.IgnoreNotFound(err)
}

// departure is what becomes of the content of an extension that goes.
type departure struct {
	// objects is how many objects go with it; less than zero if that is not known. It does
	// not matter if they stay.
	objects int
	stay    bool

	// isInstalled says that a revision was installed to the end.
	isInstalled bool

	policy UninstallPolicy
}

// letGo removes our finalizers, and tells of it.
func (r *Reconciler) letGo(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, left []string, content departure) (ctrl.Result, error) {
	r.warnDependents(ctx, ext, wanted)
	if len(left) > 0 { // or else it is gone in a moment
		var err error
		if ext, err = r.writeTerminating(ctx, ext, ocv1.ReasonTerminating, terminatingText(left, nil, nil)); err != nil {
			return ctrl.Result{}, client.IgnoreNotFound(err)
		}
	}
	if !content.stay && r.isUsedAgain(ctx, wanted, content.policy) {
		return ctrl.Result{RequeueAfter: atOnce}, nil
	}
	err := r.writeFinalizers(ctx, ext, left)
	if err == nil {
		r.emit(ext, goneOf(content))
		log.FromContext(ctx).Info("removed", keyObjects, content.objects, "stay", content.stay)
	}
	return ctrl.Result{RequeueAfter: timeToLook(ext, left, r.Now())}, client.IgnoreNotFound(err)
}

// leavesContent says that the content of an extension that is being deleted is to stay. If
// this process has not seen that, what the extension owns tells.
func (r *Reconciler) leavesContent(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted) (bool, error) {
	if r.removals.leavesOrphans(ext) {
		return true, nil
	}
	if _, told := r.removals.isReported(ext.UID); told {
		return false, nil
	}
	ctx, cancel := context.WithTimeout(ctx, deletionTimeout)
	defer cancel()
	orphaned, err := r.Deletions.IsOrphaned(ctx, wanted.Owner)
	if err != nil || !orphaned {
		return false, err
	}
	r.removals.markOrphaning(ext.UID)
	return true, nil
}

// waitToDelete is for an extension whose turn it is not.
func (r *Reconciler) waitToDelete(ctx context.Context, ext *ocv1.ClusterExtension) (ctrl.Result, error) {
	const text = "being deleted, which waits for its turn: it is large or slow, and so are others that are worked on"
	if _, err := r.writeTerminating(ctx, ext, ocv1.ReasonTerminating, text); err != nil {
		return ctrl.Result{}, client.IgnoreNotFound(err)
	}
	return ctrl.Result{}, requeue.ErrUnderway
}

// timeToLook is how long to wait before it is worth a look what has not gone yet;
// zero for now, or if the cluster does not wait for that.
func timeToLook(ext *ocv1.ClusterExtension, left []string, now time.Time) time.Duration {
	if !isForeground(left) {
		return 0
	}
	return max(remainingDelay-now.Sub(ext.DeletionTimestamp.Time), 0)
}

// writeTerminating gives the extension as it is then.
func (r *Reconciler) writeTerminating(ctx context.Context, ext *ocv1.ClusterExtension, reason, text string) (*ocv1.ClusterExtension, error) {
	return r.writeHeld(ctx, ext, terminating(ext, uninstallProgress{reason: reason, text: text}, r.Now()))
}

func (r *Reconciler) writeHeld(ctx context.Context, ext *ocv1.ClusterExtension, status *ocv1.ClusterExtensionStatus) (*ocv1.ClusterExtension, error) {
	r.concluded.Store(ext.Name, status.DeepCopy()) // so that our own write wakes nobody
	written, err := r.writeStatus(ctx, ext, status)
	if err != nil {
		return nil, err
	}
	r.emit(ext, transitionOf(&ext.Status, status))
	return written, nil
}

func isOurs(finalizer string) bool {
	return finalizer == ocv1.UninstallPolicyFinalizer || slices.Contains(finalizers, finalizer)
}

// isForeground says that the cluster keeps an extension until what it owns is gone.
func isForeground(finalizers []string) bool {
	return slices.Contains(finalizers, metav1.FinalizerDeleteDependents)
}

// heldByOthers leaves out the finalizers of the garbage collector.
func heldByOthers(left []string) []string {
	return slices.DeleteFunc(slices.Clone(left), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
}

// terminatingText says on what a deletion waits.
func terminatingText(left, remaining []string, err error) string {
	theirs := heldByOthers(left)
	var parts []string
	if len(theirs) > 0 {
		parts = append(parts, "its finalizers "+excerpt.Of(theirs, maxList)+" are removed by whoever has set them")
	}
	if slices.Contains(left, metav1.FinalizerOrphanDependents) {
		parts = append(parts, "all that it has installed, which stays, belongs to it no longer")
	}
	if isForeground(left) {
		text := "all that it has installed is gone"
		switch {
		case err != nil:
			text += ", of which it is not known what is left: " + err.Error()
		case len(remaining) > 0:
			text += fmt.Sprintf("; %d left: %s", len(remaining), excerpt.Of(remaining, maxList))
		}
		parts = append(parts, text)
	}
	return excerpt.Line("being deleted, which waits until "+strings.Join(parts, ", and until "), maxText)
}

// undecidedText says what a deletion waits for before anything may go.
func undecidedText(err error) string {
	return excerpt.Line("being deleted, which waits until it is known whether all that it has installed is to stay: "+err.Error(), maxText)
}

// claimImported sets the extension as the owner of the objects that were imported from Helm, so that they
// are deleted with it. After [uninstallPatience] it gives up, and returns an event that names the objects
// that are not deleted.
func (r *Reconciler) claimImported(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, policy UninstallPolicy) uninstallProgress {
	if policy == UninstallOrphan {
		return uninstallProgress{released: true}
	}
	ctx, cancel := context.WithTimeout(ctx, deletionTimeout)
	defer cancel()
	objects, err := r.Deletions.ClaimImported(ctx, wanted.Owner)
	switch {
	case err == nil:
		return uninstallProgress{released: true}
	case isQueued(err):
		return uninstallProgress{queued: true}
	case !r.isPatient(ext):
		return uninstallProgress{released: true, unclaimed: unclaimedOf(textsOf(objects), err)}
	}
	return uninstallProgress{reason: ocv1.ReasonTerminating, text: unclaimedText(err), wait: uninstallInterval}
}

func unclaimedText(err error) string {
	const after = ". Retrying for one minute; then these objects are kept"
	return excerpt.Line("being deleted; setting the owner of the objects installed by Helm failed: "+err.Error(), maxText-len(after)) + after
}

// stillOwnedText says what a deletion waits for that is to leave the content behind.
func stillOwnedText(err error) string {
	return excerpt.Line("being deleted, which waits until all that it has installed, which stays, belongs to it no longer: "+err.Error(), maxText)
}

// lacksFinalizers says that an extension was not looked at yet.
func lacksFinalizers(ext *ocv1.ClusterExtension) bool {
	return slices.ContainsFunc(finalizers, func(name string) bool { return !slices.Contains(ext.Finalizers, name) })
}

// wantedFinalizers gives the finalizers that an extension should have, or nil when it has
// them. That of uninstall policies is taken off where the policy does not need it.
func wantedFinalizers(ext *ocv1.ClusterExtension, policy UninstallPolicy) []string {
	wanted := slices.Clone(ext.Finalizers)
	needed := finalizers
	if policy != UninstallDelete {
		needed = append(slices.Clone(finalizers), ocv1.UninstallPolicyFinalizer)
	} else {
		wanted = slices.DeleteFunc(wanted, func(name string) bool { return name == ocv1.UninstallPolicyFinalizer })
	}
	for _, name := range needed {
		if !slices.Contains(wanted, name) {
			wanted = append(wanted, name)
		}
	}
	if slices.Equal(wanted, ext.Finalizers) {
		return nil
	}
	return wanted
}

// warnDependents tells of an extension that goes although others require it, if that
// can be found out. It holds nothing up.
func (r *Reconciler) warnDependents(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted) {
	if ext.Status.Install == nil || wanted.Request.Package == "" {
		return
	}
	observed := Observed{Installation: installation.State{Installed: &installation.Revision{Bundle: installedIdentity(ext)}}}
	r.observeOffers(ctx, wanted, &observed)
	r.emit(ext, removalOf(dependents(wanted.Request.Package, nil, observed)))
}

// warnDeletion tells how many custom resources go with an extension, and what stays
// behind. It gives how many objects go, less than zero if that is not known. It holds
// nothing up for long, and fails with [turn.ErrWait] alone.
func (r *Reconciler) warnDeletion(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, policy UninstallPolicy) (objects int, err error) {
	if policy == UninstallKeep { // custom resources stay, which was told
		return -1, r.releaseKept(ctx, ext, wanted.Owner)
	}
	ctx, cancel := context.WithTimeout(ctx, deletionTimeout)
	defer cancel()
	deletion, err := r.Deletions.BeginDeletion(ctx, wanted.Owner)
	if isQueued(err) {
		return 0, err
	}
	if err := r.releaseKept(ctx, ext, wanted.Owner); err != nil {
		return 0, err
	}
	r.emit(ext, customResourcesOf(deletion.CustomResources, err))
	r.emit(ext, stayingOf(textsOf(deletion.Staying)))
	if err != nil {
		return -1, nil
	}
	return deletion.Objects, nil
}

// releaseKept releases the kept objects of an extension, and emits an event that names them. It fails with
// [turn.ErrWait] alone. Other errors do not block the deletion: the objects then have the labels of the
// extension, and are kept.
func (r *Reconciler) releaseKept(ctx context.Context, ext *ocv1.ClusterExtension, owner object.Owner) error {
	ctx, cancel := context.WithTimeout(ctx, deletionTimeout)
	defer cancel()
	kept, err := r.Deletions.ReleaseKept(ctx, owner)
	if isQueued(err) {
		return err
	}
	if err != nil {
		log.FromContext(ctx).Info("removing the labels of kept objects failed", keyReason, excerpt.Line(err.Error(), maxText))
	}
	r.emit(ext, keptOf(textsOf(kept), err))
	return nil
}

// releasedBy returns the kept objects that a revision has dropped.
func releasedBy(applied *installation.Result) []string {
	if applied == nil {
		return nil
	}
	var kept []string
	for _, key := range object.KeysOf(applied.Changes) {
		if applied.Changes[key] == object.Released {
			kept = append(kept, key.String())
		}
	}
	return kept
}

// keptOf returns the event about kept objects; nil if there are none.
func keptOf(objects []string, err error) *transition {
	if len(objects) == 0 {
		return nil
	}
	kept := "kept because of the annotation helm.sh/resource-policy: " + excerpt.Of(objects, maxList)
	if err != nil {
		const after = ". The objects are not deleted"
		text := excerpt.Line(fmt.Sprintf("%s. Removing the labels of the extension failed: %v", kept, err), maxText-len(after)) + after
		return &transition{kind: corev1.EventTypeWarning, reason: eventKept, note: text}
	}
	text := kept + ". An extension with the same name and namespace adopts them if it installs them again"
	return &transition{kind: corev1.EventTypeNormal, reason: eventKept, note: excerpt.Line(text, maxText)}
}

// unclaimedOf returns the event about objects that Helm installed, and that are not deleted because setting
// the extension as their owner failed. The objects are not known if the release records cannot be read.
func unclaimedOf(objects []string, err error) *transition {
	const advice = ". Delete them by hand. " + lossText
	text := fmt.Sprintf("objects that Helm installed are kept, if there are any: reading the release records failed: %v", err)
	if len(objects) > 0 {
		text = fmt.Sprintf("objects that Helm installed are kept: %s: setting their owner failed: %v", excerpt.Of(objects, maxList), err)
	}
	return &transition{kind: corev1.EventTypeWarning, reason: eventContentStays, note: excerpt.Line(text, maxText-len(advice)) + advice}
}

// lossText warns of the objects that are deleted together with a CustomResourceDefinition.
const lossText = "Deleting a CustomResourceDefinition deletes all its custom resources"

// stayingOf returns the event about objects that are kept, because the extension never became their owner;
// nil if there are none.
func stayingOf(objects []string) *transition {
	if len(objects) == 0 {
		return nil
	}
	text := "objects are kept, because the extension never became their owner (they belong to Helm or to an earlier extension of this name): " +
		excerpt.Of(objects, maxList) + ". To delete them, create the extension again with a ServiceAccount that may adopt them, wait until it is ready, " +
		"and delete it; or delete them by hand. " + lossText
	return &transition{kind: corev1.EventTypeWarning, reason: eventContentStays, note: excerpt.Line(text, maxText)}
}

func countedResources(n int64) string {
	if n == 1 {
		return "1 custom resource"
	}
	return fmt.Sprintf("%d custom resources", n)
}

// customResourcesOf is the event about the custom resources that are deleted with an
// extension; nil if no definition is deleted.
func customResourcesOf(counts []installation.CustomResources, err error) *transition {
	t := &transition{kind: corev1.EventTypeWarning, reason: eventCustomResources}
	if err != nil {
		t.note = fmt.Sprintf("deleted with all custom resources of its definitions; how many that are is not known: %v", err)
		return t
	}
	if len(counts) == 0 {
		return nil
	}
	var total int64
	var some, unknown []string
	for _, c := range counts {
		total += c.Count
		switch {
		case apierrors.IsForbidden(c.Err):
			unknown = append(unknown, c.Definition+" (the ServiceAccount may not list them)")
		case c.Err != nil:
			unknown = append(unknown, fmt.Sprintf("%s (%v)", c.Definition, c.Err))
		case c.Count > 0:
			some = append(some, fmt.Sprintf("%d of %s", c.Count, c.Definition))
		}
	}
	if total == 0 && len(unknown) == 0 {
		return &transition{
			kind: corev1.EventTypeNormal, reason: eventCustomResources, note: "deleted with its definitions, of which there are no custom resources",
		}
	}
	parts := []string{"deleted with all custom resources of its definitions"}
	if len(some) > 0 {
		parts[0] = "deleted with " + countedResources(total)
		parts[0] += ": " + excerpt.Of(some, maxList) + "; those with finalizers stay, and hang, unless the operator removes them before it goes"
	}
	if len(unknown) > 0 {
		parts = append(parts, "not known how many there are of "+excerpt.Of(unknown, maxList))
	}
	t.note = excerpt.Line(strings.Join(parts, "; "), maxText)
	return t
}
