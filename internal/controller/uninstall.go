package controller

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	ctrl "sigs.k8s.io/controller-runtime"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/controller-runtime/pkg/log"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// UninstallPolicy is what becomes of the content of an extension that is deleted.
type UninstallPolicy string

// Uninstall policies. All but UninstallDeleteFirst can be the default of a controller.
const (
	// UninstallDelete lets everything go at the same time, after API services.
	UninstallDelete UninstallPolicy = "Delete"

	// UninstallDeleteFirst deletes custom resources, then what runs, and lets the rest go.
	UninstallDeleteFirst UninstallPolicy = "DeleteFirst"

	// UninstallKeep keeps definitions, and lets the rest go.
	UninstallKeep UninstallPolicy = "Keep"

	// UninstallRefuseWhileInUse lets nothing go while there are custom resources.
	UninstallRefuseWhileInUse UninstallPolicy = "RefuseWhileInUse"

	// UninstallOrphan keeps everything.
	UninstallOrphan UninstallPolicy = "Orphan"
)

// DefaultUninstallPolicies are those that extensions can have which have none of their own.
func DefaultUninstallPolicies() []UninstallPolicy {
	return []UninstallPolicy{UninstallDelete, UninstallKeep, UninstallRefuseWhileInUse, UninstallOrphan}
}

// uninstallPolicyOf is that of an extension, which is the default if it has none.
func uninstallPolicyOf(ext *ocv1.ClusterExtension, byDefault UninstallPolicy) UninstallPolicy {
	config := ext.Spec.Uninstall
	switch {
	case config == nil || *config == ocv1.ClusterExtensionUninstallConfig{Hooks: config.Hooks}: // which say nothing of the rest
		return cmp.Or(byDefault, UninstallDelete)
	case config.Policy == ocv1.UninstallPolicyOrphan:
		return UninstallOrphan
	case config.CustomResourceDefinitions == ocv1.DefinitionsUninstallPolicyKeep:
		return UninstallKeep
	case config.CustomResourceDefinitions == ocv1.DefinitionsUninstallPolicyRefuseWhileInUse:
		return UninstallRefuseWhileInUse
	case config.CustomResources == ocv1.CustomResourcesUninstallPolicyDeleteFirst:
		return UninstallDeleteFirst
	default:
		return UninstallDelete
	}
}

// uninstallStep is what is next for an extension that is being deleted.
type uninstallStep int

const (
	// stepRelease lets the extension go, and what it owns with it.
	stepRelease uninstallStep = iota

	// stepRefuse lets nothing go, and looks after the content.
	stepRefuse

	// stepDeleteCustomResources deletes those that are not being deleted yet, and looks
	// after the content: the operator has to run.
	stepDeleteCustomResources

	// stepDeleteWorkloads deletes what runs.
	stepDeleteWorkloads
)

// isUsedByOthers says that there are custom resources which the extension does not own.
func isUsedByOthers(use installation.Use) bool { return use.Count > use.Own }

// unshared leaves out definitions that stay with their custom resources, because others own
// them too.
func unshared(uses []installation.Use) []installation.Use {
	return slices.DeleteFunc(slices.Clone(uses), func(use installation.Use) bool { return use.Shared })
}

// uninstallStepOf decides by how definitions are used. What is not known counts as used.
func uninstallStepOf(policy UninstallPolicy, uses []installation.Use, workloadsGone bool) uninstallStep {
	isUnknown := func(use installation.Use) bool { return use.Err != nil }
	isUsed := func(use installation.Use) bool { return use.Count > 0 }
	switch policy {
	case UninstallRefuseWhileInUse:
		if slices.ContainsFunc(uses, isUnknown) || slices.ContainsFunc(uses, isUsedByOthers) {
			return stepRefuse
		}
	case UninstallDeleteFirst:
		uses = unshared(uses)
		switch {
		case slices.ContainsFunc(uses, isUnknown):
			return stepRefuse
		case slices.ContainsFunc(uses, isUsed):
			return stepDeleteCustomResources
		case !workloadsGone:
			return stepDeleteWorkloads
		}
	case UninstallDelete, UninstallKeep, UninstallOrphan: // do not depend on it
	}
	return stepRelease
}

const (
	// uninstallPatience is how long what goes first may take, before a person is asked to
	// look at it.
	uninstallPatience = time.Minute

	// uninstallInterval is how often to look until then, and uninstallRetry after that and
	// after errors.
	uninstallInterval = 2 * time.Second
	uninstallRetry    = 30 * time.Second

	// uninstallTimeout bounds each request for a part of a policy, which is many requests to
	// the cluster: webhooks of the bundle have a say in how long these take, and the worker is
	// for all extensions. The next pass goes on.
	uninstallTimeout = time.Minute
)

// inTime carries out a part of a policy within [uninstallTimeout].
func inTime[T any](ctx context.Context, owner object.Owner, do func(context.Context, object.Owner) (T, error)) (T, error) {
	ctx, cancel := context.WithTimeout(ctx, uninstallTimeout)
	defer cancel()
	return do(ctx, owner)
}

// uninstallProgress is how far the uninstall policy of an extension has come.
type uninstallProgress struct {
	// released says that the extension may go. All else is about one that may not.
	released bool

	// unclaimed is the event about imported objects that are not deleted with a released extension;
	// nil if there are none.
	unclaimed *transition

	// queued says that it has to wait for its turn.
	queued bool

	// reason and text are for the status, and so is how the workloads are doing; nil if
	// nobody looks after them any more.
	reason, text string
	available    *metav1.Condition

	// wait is when to look again, if nothing wakes the extension before.
	wait time.Duration
}

// uninstall carries out the policy of an extension that is being deleted, as far as it
// goes. Any write of it can be the last one of this process: each pass begins with what the
// cluster has.
func (r *Reconciler) uninstall(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, policy UninstallPolicy) uninstallProgress {
	wanted.Owner.Held, wanted.Owner.HeldBy = true, ext.Generation
	if policy == UninstallOrphan {
		return r.orphanAll(ctx, ext, wanted)
	}
	hooks, err := r.deletionHooksOf(ctx, ext, wanted)
	switch {
	case err != nil:
		return r.hooksEnd(ext, err, "", "hooks are looked for")
	case hooks.ContentGoes: // nothing of it is put back, whatever it is that goes wrong
		return r.endWithHooks(ctx, ext, wanted, hooks)
	}
	if progress := r.refuseNamespaces(ctx, ext, wanted, namespacesRetry); !progress.released {
		return progress
	}
	steps := []func() uninstallProgress{
		func() uninstallProgress { return r.beginWithHooks(ctx, ext, wanted, hooks) },
		func() uninstallProgress { return r.uninstallAs(ctx, ext, wanted, policy) },
		func() uninstallProgress { return r.refuseNamespaces(ctx, ext, wanted, namespacesFresh) },
		func() uninstallProgress { return r.unregister(ctx, ext, wanted) },
		func() uninstallProgress { return r.endWithHooks(ctx, ext, wanted, hooks) },
	}
	if policy == UninstallRefuseWhileInUse { // nothing happens while it is refused
		steps[0], steps[1] = steps[1], steps[0]
	}
	for _, step := range steps {
		if progress := step(); !progress.released {
			return progress
		}
	}
	return uninstallProgress{released: true}
}

// uninstallAs does what a policy wants before the rest goes.
func (r *Reconciler) uninstallAs(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, policy UninstallPolicy) uninstallProgress {
	switch policy {
	case UninstallKeep:
		return r.keepDefinitions(ctx, ext, wanted)
	case UninstallRefuseWhileInUse, UninstallDeleteFirst:
		return r.uninstallByUse(ctx, ext, wanted, policy)
	case UninstallDelete, UninstallOrphan:
	}
	return uninstallProgress{released: true}
}

// unregister deletes API services before the workloads that serve them. While no server answers for an
// API service, no namespace can be deleted, and discovery is incomplete for the whole cluster. It also
// deletes CRDs with a conversion webhook first: the API server may need the webhook to delete their
// custom resources. Objects that still exist [uninstallPatience] after the first try are deleted with
// all others; the ServiceAccount may be gone, for example. A deletion in the foreground skips this step:
// the garbage collector has begun already.
func (r *Reconciler) unregister(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted) uninstallProgress {
	if isForeground(ext.Finalizers) {
		return uninstallProgress{released: true}
	}
	left, err := inTime(ctx, wanted.Owner, r.Uninstalls.UnregisterAPIs)
	switch {
	case err == nil && len(left) == 0:
		return uninstallProgress{released: true}
	case errors.Is(err, object.ErrOwnerGone):
		return r.decidedAnew(ext, "being deleted, which waits until its API services and converted CRDs are gone")
	case isQueued(err):
		return uninstallProgress{queued: true}
	}
	why := excerpt.Of(left, maxList)
	if err != nil {
		why = err.Error()
	}
	now := r.Now()
	if now.Sub(r.removals.firstUnregistering(ext.UID, now)) >= uninstallPatience {
		log.FromContext(ctx).Info("API services and converted CRDs are deleted at the same time as what serves them", keyReason, why)
		return uninstallProgress{released: true}
	}
	text := fmt.Sprintf("being deleted, which waits for %s at most until its API services and converted CRDs are gone: %s", uninstallPatience, why)
	return uninstallProgress{reason: ocv1.ReasonTerminating, text: excerpt.Line(text, maxText), wait: uninstallInterval}
}

func (r *Reconciler) uninstallByUse(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, policy UninstallPolicy) uninstallProgress {
	uses, err := inTime(ctx, wanted.Owner, r.Uninstalls.Uses)
	if err != nil {
		return r.blocked(ctx, wanted, unknownUseText(err), uninstallRetry)
	}
	switch uninstallStepOf(policy, uses.Definitions, false) {
	case stepRefuse:
		return r.blocked(ctx, wanted, refusedText(policy, uses.Definitions), cmp.Or(uses.RecheckAfter, uninstallRetry))
	case stepDeleteCustomResources:
		going := unshared(uses.Definitions)
		text := goingFirstText(going, ext.DeletionTimestamp.Time)
		_, err := inTime(ctx, wanted.Owner, func(ctx context.Context, owner object.Owner) (struct{}, error) {
			return struct{}{}, r.Uninstalls.DeleteCustomResources(ctx, owner)
		})
		if errors.Is(err, object.ErrOwnerGone) {
			return r.decidedAnew(ext, text)
		}
		if err != nil {
			return r.blocked(ctx, wanted, failedUninstallText("custom resources are deleted", err), uninstallRetry)
		}
		if !slices.ContainsFunc(going, isUsedByOthers) {
			return r.waitsFor(ext, text) // what the bundle has brought would be put back
		}
		return r.waits(ctx, ext, wanted, text)
	case stepDeleteWorkloads:
		if progress := r.unregister(ctx, ext, wanted); !progress.released {
			return progress
		}
		left, err := inTime(ctx, wanted.Owner, r.Uninstalls.DeleteWorkloads)
		if errors.Is(err, object.ErrOwnerGone) {
			return r.decidedAnew(ext, "being deleted, which waits until the operator is gone")
		}
		if err != nil {
			return r.blocked(ctx, wanted, failedUninstallText("the operator is deleted", err), uninstallRetry)
		}
		if len(left) > 0 {
			return r.waitsFor(ext, "being deleted, which waits until the operator is gone: "+excerpt.Of(left, maxList))
		}
		return r.releaseIfUnused(ctx, wanted, policy)
	case stepRelease:
	}
	return uninstallProgress{released: true}
}

// decidedAnew is for a deletion that somebody wants otherwise by now. The event of that brings the
// next pass; this is in case that it is late. In the foreground it stays so until the garbage
// collector is done, which can take for ever.
func (r *Reconciler) decidedAnew(ext *ocv1.ClusterExtension, text string) uninstallProgress {
	if isForeground(ext.Finalizers) {
		return r.waitsFor(ext, text)
	}
	return uninstallProgress{reason: ocv1.ReasonTerminating, text: text, wait: removalRecheck}
}

// releaseIfUnused looks once more: the operator may have made custom resources while it
// was being deleted.
func (r *Reconciler) releaseIfUnused(ctx context.Context, wanted Wanted, policy UninstallPolicy) uninstallProgress {
	uses, err := inTime(ctx, wanted.Owner, r.Uninstalls.Uses)
	if err != nil {
		return uninstallProgress{reason: ocv1.ReasonDeletionBlocked, text: unknownUseText(err), wait: uninstallRetry}
	}
	switch uninstallStepOf(policy, uses.Definitions, true) {
	case stepRelease:
		return uninstallProgress{released: true}
	case stepRefuse:
		return uninstallProgress{reason: ocv1.ReasonDeletionBlocked, text: refusedText(policy, uses.Definitions), wait: uninstallRetry}
	case stepDeleteCustomResources, stepDeleteWorkloads:
	}
	return uninstallProgress{reason: ocv1.ReasonTerminating, text: "being deleted, which begins again with custom resources: some were made meanwhile", wait: uninstallInterval}
}

// keepDefinitions has the definitions belong to nobody, so that only the rest goes.
func (r *Reconciler) keepDefinitions(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted) uninstallProgress {
	kept, err := inTime(ctx, wanted.Owner, r.Uninstalls.KeepDefinitions)
	if err != nil {
		return r.blocked(ctx, wanted, KeepingText(err), uninstallRetry)
	}
	if len(kept) > 0 {
		r.emit(ext, &transition{
			kind: corev1.EventTypeNormal, reason: eventDefinitionsKept,
			note: fmt.Sprintf("%d CustomResourceDefinitions stay, and all custom resources but those of the bundle itself: %s", len(kept), excerpt.Of(kept, maxText/2)),
		})
	}
	return uninstallProgress{released: true}
}

// orphanAll has all content belong to nobody. Unlike the deletion that asks for the same,
// it is not given up: nobody else has begun with it.
func (r *Reconciler) orphanAll(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted) uninstallProgress {
	r.forget(ctx, ext.Name) // or else what is orphaned would be put back
	_, err := inTime(ctx, wanted.Owner, func(ctx context.Context, owner object.Owner) (struct{}, error) {
		return struct{}{}, r.Deletions.Orphan(ctx, owner)
	})
	switch {
	case err == nil:
		return r.endOrphaning(ctx, ext, wanted)
	case isQueued(err):
		return uninstallProgress{queued: true}
	}
	text := stillOwnedText(err)
	if r.isPatient(ext) {
		return uninstallProgress{reason: ocv1.ReasonOrphaning, text: text, wait: orphanRetry}
	}
	return uninstallProgress{reason: ocv1.ReasonDeletionBlocked, text: text, wait: uninstallRetry}
}

// endOrphaning lets an extension go whose content belongs to nobody, as far as records tell.
// These can be lost, or deleted by hand, so that the definitions are asked for.
func (r *Reconciler) endOrphaning(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted) uninstallProgress {
	uses, err := inTime(ctx, wanted.Owner, r.Uninstalls.Uses)
	switch {
	case err != nil:
		return uninstallProgress{reason: ocv1.ReasonDeletionBlocked, text: unknownUseText(err), wait: uninstallRetry}
	case len(uses.Definitions) > 0:
		return uninstallProgress{reason: ocv1.ReasonDeletionBlocked, text: UnrecordedText(uses.Definitions), wait: uninstallRetry}
	}
	r.removals.markOrphaning(ext.UID)
	return uninstallProgress{released: true}
}

// uninstallAmongOthers holds an extension that is not to go while it is used for as long as
// finalizers of others do: custom resources that are made meanwhile count as well.
func (r *Reconciler) uninstallAmongOthers(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, policy UninstallPolicy, left []string) uninstallProgress {
	claimed := r.claimImported(ctx, ext, wanted, policy)
	if !claimed.released {
		return claimed
	}
	progress := r.uninstall(ctx, ext, wanted, policy)
	progress.unclaimed = claimed.unclaimed
	if !progress.released || policy != UninstallRefuseWhileInUse || len(heldByOthers(left)) == 0 {
		return progress
	}
	progress = r.blocked(ctx, wanted, terminatingText(left, nil, nil), 0)
	progress.reason = ocv1.ReasonTerminating
	return progress
}

// uninstallLate carries out a policy by which content stays, of an extension that has none of our
// finalizers any more: it was set after these were removed, while those of others hold the
// extension. What the garbage collector is at work on already is left to it.
func (r *Reconciler) uninstallLate(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, policy UninstallPolicy) uninstallProgress {
	keeps := policy == UninstallKeep || policy == UninstallOrphan
	if !keeps || len(heldByOthers(ext.Finalizers)) < len(ext.Finalizers) {
		return uninstallProgress{released: true}
	}
	return r.uninstall(ctx, ext, wanted, policy)
}

// isPatient says that a deletion has not taken long yet.
func (r *Reconciler) isPatient(ext *ocv1.ClusterExtension) bool {
	return r.Now().Sub(ext.DeletionTimestamp.Time) < uninstallPatience
}

// waits is for custom resources that are being deleted, while their operator is looked
// after.
func (r *Reconciler) waits(ctx context.Context, ext *ocv1.ClusterExtension, wanted Wanted, text string) uninstallProgress {
	progress := r.waitsFor(ext, text)
	kept := r.blocked(ctx, wanted, progress.text, 0)
	progress.text, progress.available = kept.text, kept.available
	return progress
}

func (r *Reconciler) waitsFor(ext *ocv1.ClusterExtension, text string) uninstallProgress {
	if r.isPatient(ext) {
		return uninstallProgress{reason: ocv1.ReasonTerminating, text: text, wait: uninstallInterval}
	}
	return uninstallProgress{reason: ocv1.ReasonDeletionBlocked, text: text + "; see why they stay, " + wayOut, wait: uninstallRetry / 2}
}

// blocked is for an extension that stays until a person acts. Its content is looked after.
func (r *Reconciler) blocked(ctx context.Context, wanted Wanted, text string, wait time.Duration) uninstallProgress {
	installed, err := r.lookAfter(ctx, wanted)
	switch {
	case err != nil:
		text = excerpt.Line(text, maxText-maxPart) + "; what is installed cannot be repaired: " + excerpt.Line(err.Error(), maxList)
	case wanted.Suspended:
		text = excerpt.Line(text, maxText-maxPart) + "; what is installed is not repaired, as the extension is suspended"
	}
	progress := uninstallProgress{reason: ocv1.ReasonDeletionBlocked, text: text, wait: wait}
	if installed != nil {
		outcome := Outcome{Owner: wanted.Owner, Installed: installed, HasValues: wanted.HasValues}
		r.observeWorkloads(wanted, &outcome)
		progress.available = new(availableCondition(outcome))
	}
	return progress
}

// lookAfter repairs what an extension that is being deleted has installed. It asks the
// cluster for nothing while nothing has changed, and seldom after an error. It gives what is
// installed, as far as that is known.
func (r *Reconciler) lookAfter(ctx context.Context, wanted Wanted) (*installation.Revision, error) {
	if failed := r.removals.lastRepair(wanted.Owner.UID); failed.err != nil && r.Now().Before(failed.next) {
		return failed.installed, failed.err
	}
	state, err := r.Releases.Observe(ctx, wanted.Owner)
	if err == nil && state.Installed != nil {
		upkeep := r.Releases.Repair
		if wanted.Suspended {
			upkeep = r.Releases.Renew
		}
		var result installation.Result
		result, err = inTime(ctx, wanted.Owner, upkeep)
		logChanges(ctx, Outcome{Owner: wanted.Owner, Installed: state.Installed, Repair: result})
	}
	if isQueued(err) || errors.Is(err, object.ErrOwnerGone) {
		err = nil // the next pass finds out
	}
	r.removals.noteRepair(wanted.Owner.UID, failedRepair{installed: state.Installed, err: err, next: r.Now().Add(uninstallRetry)})
	return state.Installed, err
}

// holdDeletion tells why an extension that is being deleted stays.
func (r *Reconciler) holdDeletion(ctx context.Context, ext *ocv1.ClusterExtension, progress uninstallProgress) (ctrl.Result, error) {
	if progress.queued {
		return r.waitToDelete(ctx, ext)
	}
	if isForeground(ext.Finalizers) { // no finalizer of ours holds that
		progress.text = "deleted in the foreground, by which the cluster deletes all that it has installed, whatever its uninstall policy says; " + progress.text
	}
	before := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeReady)
	_, err := r.writeHeld(ctx, ext, terminating(ext, progress, r.Now()))
	if err == nil && progress.reason == ocv1.ReasonDeletionBlocked && (before == nil || before.Reason != progress.reason) {
		log.FromContext(ctx).Info("deletion is held up", keyReason, excerpt.Line(progress.text, maxText))
	}
	return ctrl.Result{RequeueAfter: progress.wait}, client.IgnoreNotFound(err)
}

// isUsedAgain looks for custom resources for the last time before an extension goes that is
// not to go while there are some. What is made after that goes with it.
func (r *Reconciler) isUsedAgain(ctx context.Context, wanted Wanted, policy UninstallPolicy) bool {
	if policy != UninstallRefuseWhileInUse {
		return false
	}
	uses, err := inTime(ctx, wanted.Owner, r.Uninstalls.Uses)
	return err != nil || uninstallStepOf(policy, uses.Definitions, true) != stepRelease
}

const wayOut = "or set another spec.uninstall"

// refusedText names what holds up a deletion: what is not known, counts, and the first
// objects.
func refusedText(policy UninstallPolicy, uses []installation.Use) string {
	var counts, first, unknown []string
	for _, use := range uses {
		switch others := use.Count - use.Own; {
		case use.Err != nil:
			unknown = append(unknown, unknownText(use))
		case others > 0 && policy == UninstallRefuseWhileInUse:
			counts = append(counts, fmt.Sprintf("%d of %s", others, use.Definition))
			first = append(first, namesOf(use, others)...)
		}
	}
	var parts []string
	if len(counts) > 0 {
		parts = append(parts, "deletion is refused while there are custom resources: "+excerpt.Of(counts, maxList)+": "+
			firstOf(first)+"; delete them, "+wayOut)
	}
	if len(unknown) > 0 {
		text := "deletion is refused because it is not known how many custom resources there are: " + excerpt.Of(unknown, maxPart)
		if slices.ContainsFunc(uses, needsConversion) {
			text += ": repair the operator, whose conversion webhook does not answer: `kubectl get pods --all-namespaces` shows its pods"
		}
		parts = append(parts, text+", "+wayOut)
	}
	return strings.Join(parts, "; ")
}

// namesOf are those first that the extension does not own, of which there are some.
func namesOf(use installation.Use, others int64) []string {
	named := min(int64(len(use.First)), others)
	return textsOf(use.First[:named])
}

// firstOf names as many objects as there is room for, at most [installation.MaxFirst].
func firstOf(names []string) string {
	named := names[:min(len(names), installation.MaxFirst)]
	return strings.Join(named, ", ")
}

func unknownText(use installation.Use) string {
	if denied, ok := errors.AsType[*installation.UncountedError](use.Err); ok {
		return denied.Error() + ": give one of them that right"
	}
	text := use.Err.Error()
	if needsConversion(use) {
		_, cause, _ := strings.Cut(text, conversionWebhook)
		text = conversionWebhook + cause // without the object that the API server could not read
	}
	return use.Definition + ": " + text
}

const conversionWebhook = "conversion webhook"

// needsConversion reports whether custom resources cannot be counted because a conversion webhook does not answer.
func needsConversion(use installation.Use) bool {
	return use.Err != nil && strings.Contains(use.Err.Error(), conversionWebhook)
}

func unknownUseText(err error) string {
	return excerpt.Line("deletion is refused because it is not known which custom resources there are: "+err.Error(), maxText)
}

// goingFirstText says what holds up custom resources that are deleted before their
// operator, since the extension is being deleted. Some operators make theirs anew as long as
// they run.
func goingFirstText(uses []installation.Use, since time.Time) string {
	var counts, first []string
	anew := false
	for _, use := range uses {
		if use.Count > 0 {
			counts = append(counts, fmt.Sprintf("%d of %s", use.Count, use.Definition))
			first = append(first, textsOf(use.First)...)
			anew = anew || slices.ContainsFunc(use.First, func(stored installation.StoredObject) bool { return stored.Created.After(since) })
		}
	}
	text := "being deleted, which waits until custom resources are gone, whose finalizers the operator has to remove: " +
		excerpt.Of(counts, maxList) + ": " + firstOf(first)
	if anew {
		text += "; some were made since: stop what makes them or, if that is the operator, set spec.uninstall to policy Delete"
	}
	return text
}

// UnrecordedText says why definitions of which no record tells are not let go of with everything
// else, and what to do about it; a line for a status.
func UnrecordedText(uses []installation.Use) string {
	names := make([]string, len(uses))
	for i, use := range uses {
		names[i] = use.Definition
	}
	return excerpt.Line("deletion is refused because definitions would go that are to stay: "+excerpt.Of(names, maxList)+
		": no record tells that they are installed, nor what else is; delete it again with --cascade=orphan, "+wayOut, maxText)
}

// KeepingText says why definitions cannot be kept and, of what is converted by a webhook, what to
// do about it; a line for a status.
func KeepingText(err error) string {
	advice := adviceOn(err)
	if _, ok := errors.AsType[*installation.ConversionError](err); ok {
		advice = "bring all stored objects to one version, which is the only one that is served and in status.storedVersions"
	}
	return refusal("deletion is refused because definitions cannot be kept: ", err, advice)
}

func failedUninstallText(what string, err error) string {
	return refusal("being deleted, which waits until "+what+": ", err, adviceOn(err))
}

// adviceOn speaks of permissions only if one is missing. The denial of a webhook has the same status.
func adviceOn(err error) string {
	switch {
	case object.IsLackOfRights(err):
		return "give the ServiceAccount that right"
	case object.IsDenied(err):
		return "have the webhook or policy let the request pass"
	}
	return "the controller retries automatically: fix the cause"
}

// refusal is cut in the error, so that the advice is whole.
func refusal(what string, err error, advice string) string {
	advice = "; " + advice + ", " + wayOut
	return excerpt.Line(what+err.Error(), maxText-len(advice)) + advice
}
