package applier

import (
	"context"
	"fmt"
	"slices"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

func (a *Applier) newHookRun(owner object.Owner, history *release.History, hooks *release.Hooks, deadline time.Duration) (*hookRun, error) {
	client, err := impersonation.As(a.clients, owner.Account(), dynamic.NewForConfigAndClient)
	return &hookRun{applier: a, owner: owner, client: client, history: history, hooks: hooks, deadline: deadline}, err
}

// hookRun are the hooks of one event of one revision.
type hookRun struct {
	applier  *Applier
	owner    object.Owner
	client   dynamic.Interface
	history  *release.History
	hooks    *release.Hooks
	deadline time.Duration

	// unsaved says that the record does not say how far the hooks have come.
	unsaved bool
}

// hookObject is the object of a hook where the cluster has it.
type hookObject struct {
	hook.Hook

	// place is the number of the hook among those of its event.
	place int

	item   object.Item
	access dynamic.ResourceInterface
}

func accessTo(client dynamic.Interface, item object.Item) dynamic.ResourceInterface {
	return client.Resource(item.Mapping.Resource).Namespace(item.Key.Namespace)
}

func objectError(action string, key object.Key, err error) error {
	return &plan.ObjectsError{Failures: []plan.ObjectFailure{{Action: action, Object: key, Err: err}}}
}

// find fails with [*object.UnknownKindsError] if nobody serves the kind.
func (r *hookRun) find(place int) (hookObject, error) {
	one := r.hooks.All[place]
	items, err := object.Items(r.applier.config.Mapper, r.owner, []*unstructured.Unstructured{one.Object})
	if err != nil {
		return hookObject{}, err
	}
	return hookObject{Hook: one, place: place, item: items[0], access: accessTo(r.client, items[0])}, nil
}

// mark is what the object of a hook of this run is annotated with.
func (r *hookRun) mark(found hookObject) string {
	return r.hooks.Progress.Mark(fmt.Sprintf("%s/%d/%s/%d", r.owner.UID, r.hooks.Revision, r.hooks.Progress.Event(), found.place))
}

// isMade says that an object was created for this run. Annotations and owners anybody can write who may
// create it, but not one that is marked.
func (r *hookRun) isMade(found hookObject, live *unstructured.Unstructured) bool {
	isOurs := r.owner.Controls(live) || object.StaysAsHook(found.Object) && r.owner.Owns(live)
	return isOurs && live.GetAnnotations()[hook.AnnotationRun] == r.mark(found)
}

// isOfThisRun says that an object was created for this run, and is to stay.
func (r *hookRun) isOfThisRun(found hookObject, live *unstructured.Unstructured) bool {
	return r.isMade(found, live) && live.GetDeletionTimestamp() == nil
}

// inTheWay returns why an existing object blocks the hook; empty if it does not, or if this run has created it.
func (r *hookRun) inTheWay(ctx context.Context, found hookObject, live *unstructured.Unstructured) (hook.Obstacle, error) {
	if live == nil || live.GetDeletionTimestamp() != nil || r.isOfThisRun(found, live) {
		return "", nil
	}
	isContent, err := r.isContent(ctx, found)
	if err != nil {
		return "", err
	}
	return found.ObstacleIn(live, isContent, object.ContainsData(found.Object)), nil
}

// isContent says that the object of a hook is one of what is installed. Its annotations do not tell: it may
// have been a hook of an earlier version.
func (r *hookRun) isContent(ctx context.Context, found hookObject) (bool, error) {
	objects, err := r.history.InstalledThat(ctx, release.NamedAs([]*unstructured.Unstructured{found.item.Object}))
	if err != nil {
		return false, err
	}
	items, err := object.Items(r.applier.config.Mapper, r.owner, objects)
	return slices.ContainsFunc(items, func(item object.Item) bool { return item.Key == found.item.Key }), err
}

// step goes on with the next hook. It is nil when that has succeeded.
func (r *hookRun) step(ctx context.Context) error {
	found, live, err := r.next(ctx)
	var inTheWay hook.Obstacle
	if err == nil {
		inTheWay, err = r.inTheWay(ctx, found, live)
	}
	switch {
	case err != nil:
		return err
	case inTheWay != "":
		return r.block(ctx, found, string(inTheWay), inTheWay == hook.IsContent)
	case r.hooks.Progress.FailedAt != nil:
		return r.again(ctx, found, live)
	case live == nil && r.hooks.Progress.Begun > maxBegun:
		return r.failGone(ctx, found)
	case live == nil:
		return r.begin(ctx, found)
	case r.isOfThisRun(found, live), live.GetDeletionTimestamp() == nil && object.ContainsData(found.Object):
		return r.judge(ctx, found, live)
	}
	return r.remove(ctx, found, live)
}

// maxBegun is how often an object is created anew that is gone before it was known how its run has ended.
// Once may be for a process that has died between saying so and doing it.
const maxBegun = 1

// failGone is for an object that goes by itself, or that somebody deletes each time.
func (r *hookRun) failGone(ctx context.Context, found hookObject) error {
	failed := r.hooks.Progress.Failed(r.applier.config.Now(), "it was gone before it was known how it has ended, more than once")
	failed.Gone = true
	return r.failWith(ctx, found, failed)
}

// next is the hook that is to run, or runs, with its object; nil if there is none. It fails as [hookRun.read]
// does, and with [*installation.HookFailedError] if the hook has to rest.
func (r *hookRun) next(ctx context.Context) (hookObject, *unstructured.Unstructured, error) {
	found, err := r.find(r.hooks.Progress.Done)
	if err != nil {
		return hookObject{}, nil, err
	}
	live, err := r.read(ctx, found)
	if err == nil && r.hasToRest(found, live) {
		err = r.failedError(found, r.hooks.Progress.Why)
	}
	return found, live, err
}

// get gives what is there under the name of a hook; nil if there is nothing.
func (o hookObject) get(ctx context.Context) (*unstructured.Unstructured, error) {
	live, err := o.access.Get(ctx, o.item.Key.Name, metav1.GetOptions{})
	switch {
	case apierrors.IsNotFound(err):
		return nil, nil
	case err != nil:
		return nil, objectError("reading", o.item.Key, err)
	}
	return live, nil
}

// read gives the object of a hook; nil if there is none. One of others is a conflict.
func (r *hookRun) read(ctx context.Context, found hookObject) (*unstructured.Unstructured, error) {
	live, err := found.get(ctx)
	if live != nil && !r.owner.Owns(live) {
		return nil, &object.ConflictError{Claimant: r.owner, Conflicts: []object.Conflict{{Object: found.item.Key, Holder: object.HolderOf(live)}}}
	}
	return live, err
}

// hasToRest says that a hook has failed a short while ago, and that nobody has deleted it since.
func (r *hookRun) hasToRest(found hookObject, live *unstructured.Unstructured) bool {
	return r.hooks.Progress.RetryIn(r.applier.config.Now()) > 0 && (live != nil || r.hooks.Progress.Gone || found.HasPolicy(hook.Failed))
}

// await fails while the next hook runs, or rests. It reads its object, and does nothing else.
func (r *hookRun) await(ctx context.Context) error {
	if !r.hooks.AreLeft() {
		return nil
	}
	found, live, err := r.next(ctx)
	switch {
	case err != nil:
		return err
	case live == nil:
		return nil
	case live.GetDeletionTimestamp() != nil && !r.cannotGo(live):
		return r.underwayError(found, true, r.applier.config.Now().Sub(live.GetDeletionTimestamp().Time))
	case !r.isOfThisRun(found, live):
		return nil
	}
	now := r.applier.config.Now()
	if state, _ := hook.StateOf(live, r.deadline, now); state == hook.Running {
		return r.underwayError(found, false, now.Sub(live.GetCreationTimestamp().Time))
	}
	return nil
}

// judge looks at the run of an object that is there.
func (r *hookRun) judge(ctx context.Context, found hookObject, live *unstructured.Unstructured) error {
	now := r.applier.config.Now()
	switch state, why := hook.StateOf(live, r.deadline, now); state {
	case hook.HasSucceeded:
		r.hooks.Progress, r.unsaved = r.hooks.Progress.Succeeded(), true
		if hook.IsAwaited(found.Object) {
			return r.save(ctx)
		}
		return nil // until the next one is waited for, its object tells
	case hook.HasFailed:
		if line := r.applier.lastLine(ctx, r.owner, live); line != "" {
			why += "; its log ends with: " + line
		}
		return r.fail(ctx, found, why)
	case hook.Running:
	}
	return r.underwayError(found, false, now.Sub(live.GetCreationTimestamp().Time))
}

// again runs the hook once more that has failed.
func (r *hookRun) again(ctx context.Context, found hookObject, live *unstructured.Unstructured) error {
	if live != nil {
		return r.remove(ctx, found, live)
	}
	if err := r.bringBack(ctx); err != nil {
		return err
	}
	r.hooks.Progress = r.hooks.Progress.Anew()
	if err := r.save(ctx); err != nil {
		return err
	}
	return r.begin(ctx, found)
}

// bringBack creates what earlier hooks have made for the one that has failed, and what their policy
// has had deleted since. Those that are waited for have done their work, and are not run twice.
func (r *hookRun) bringBack(ctx context.Context) error {
	for place := range r.hooks.Progress.Done {
		if hook.IsAwaited(r.hooks.All[place].Object) {
			continue
		}
		found, err := r.find(place)
		if err != nil {
			return err
		}
		live, err := r.read(ctx, found)
		switch {
		case err != nil:
			return err
		case live == nil:
			if err = r.applier.confirm(ctx, r.owner); err == nil {
				_, err = r.create(ctx, found)
			}
		case live.GetDeletionTimestamp() != nil:
			err = r.remove(ctx, found, live)
		}
		if err != nil {
			return err
		}
	}
	return nil
}

// begin creates the object of a hook. If it is waited for, it is noted first, and what has run before:
// one that is gone later is not begun without end.
func (r *hookRun) begin(ctx context.Context, found hookObject) error {
	if err := r.applier.confirm(ctx, r.owner); err != nil {
		return err
	}
	isAwaited := hook.IsAwaited(found.Object)
	if isAwaited {
		r.hooks.Progress = r.hooks.Progress.Begins()
	}
	if isAwaited || !r.hooks.IsRecorded { // or else nobody would know the key of its mark
		if err := r.save(ctx); err != nil {
			return err
		}
	}
	live, err := r.create(ctx, found)
	if err != nil {
		return err
	}
	return r.judge(ctx, found, live)
}

// create is for an extension that was confirmed to be there.
func (r *hookRun) create(ctx context.Context, found hookObject) (*unstructured.Unstructured, error) {
	made := r.owner.OwnHook(hook.Bounded(found.item.Object, r.deadline))
	r.owner.Stamp(made)
	annotations := made.GetAnnotations()
	annotations[hook.AnnotationRun] = r.mark(found)
	made.SetAnnotations(annotations)
	live, err := found.access.Create(ctx, made, metav1.CreateOptions{FieldManager: object.FieldManager})
	if err != nil {
		return nil, objectError("creating", found.item.Key, err)
	}
	log.FromContext(ctx).Info("runs a hook", "event", r.hooks.Progress.Event(), "object", found.item.Key.Logged())
	return live, nil
}

// cannotGo says that an object is being deleted for longer than a hook may take: finalizers hold it.
func (r *hookRun) cannotGo(live *unstructured.Unstructured) bool {
	deleted := live.GetDeletionTimestamp()
	return deleted != nil && r.applier.config.Now().Sub(deleted.Time) > r.deadline
}

// remove deletes an object of an earlier run, with its pods, and waits until it is gone.
func (r *hookRun) remove(ctx context.Context, found hookObject, live *unstructured.Unstructured) error {
	if r.cannotGo(live) {
		return r.block(ctx, found, fmt.Sprintf("an object of an earlier run cannot be deleted while it has finalizers %v: the clients that have set them have to remove them", usage.TheirFinalizers(live)), false)
	}
	if live.GetDeletionTimestamp() == nil {
		if err := r.delete(ctx, found, live); err != nil {
			return err
		}
	}
	since := time.Duration(0)
	if live.GetDeletionTimestamp() != nil {
		since = r.applier.config.Now().Sub(live.GetDeletionTimestamp().Time)
	}
	return r.underwayError(found, true, since)
}

func (r *hookRun) delete(ctx context.Context, found hookObject, live *unstructured.Unstructured) error {
	if err := r.applier.confirm(ctx, r.owner); err != nil {
		return err
	}
	err := found.access.Delete(ctx, live.GetName(), object.InForeground(live))
	if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsConflict(err) {
		return objectError("deleting", found.item.Key, err)
	}
	return nil
}

// maxHookWhy is how much is told of why a hook has failed, in bytes.
const maxHookWhy = 600

// block is for a hook in whose place another object is.
func (r *hookRun) block(ctx context.Context, found hookObject, why string, isContent bool) error {
	failed := r.hooks.Progress.Failed(r.applier.config.Now(), excerpt.Line(why, maxHookWhy))
	failed.Blocked, failed.ByContent = true, isContent
	return r.failWith(ctx, found, failed)
}

// fail notes that the hook has failed, and deletes what its policy says.
func (r *hookRun) fail(ctx context.Context, found hookObject, why string) error {
	return r.failWith(ctx, found, r.hooks.Progress.Failed(r.applier.config.Now(), excerpt.Line(why, maxHookWhy)))
}

func (r *hookRun) failWith(ctx context.Context, found hookObject, failed hook.Progress) error {
	log.FromContext(ctx).Info("a hook has failed", "event", r.hooks.Progress.Event(), "object", found.item.Key.Logged())
	r.hooks.Progress = failed
	if err := r.save(ctx); err != nil {
		return err
	}
	if err := r.deleteBy(ctx, hook.Succeeded, 0, found.place); err != nil {
		return err
	}
	if err := r.deleteBy(ctx, hook.Failed, found.place, found.place+1); err != nil {
		return err
	}
	return r.failedError(found, failed.Why)
}

// clean deletes those that are to go when all have succeeded.
func (r *hookRun) clean(ctx context.Context) error {
	if r.unsaved {
		if err := r.save(ctx); err != nil {
			return err
		}
	}
	return r.deleteBy(ctx, hook.Succeeded, 0, len(r.hooks.All))
}

// deleteBy deletes the objects of this run of hooks with a policy from one place up to another, the last
// one first.
func (r *hookRun) deleteBy(ctx context.Context, policy hook.Policy, from, to int) error {
	for place := to - 1; place >= from; place-- {
		if !r.hooks.All[place].HasPolicy(policy) {
			continue
		}
		found, err := r.find(place)
		if err != nil {
			return err
		}
		live, err := found.get(ctx)
		if err != nil {
			return err
		}
		if live == nil || !r.isOfThisRun(found, live) {
			continue
		}
		if err := r.delete(ctx, found, live); err != nil {
			return err
		}
	}
	return nil
}

func (r *hookRun) save(ctx context.Context) error {
	if err := r.history.SaveProgress(ctx, r.hooks.Revision, &r.hooks.Progress); err != nil {
		return err
	}
	r.unsaved, r.hooks.IsRecorded = false, true
	return nil
}

func (r *hookRun) underwayError(found hookObject, going bool, since time.Duration) error {
	return &installation.HookUnderwayError{Event: r.hooks.Progress.Event(), Object: found.item.Key, Going: going, RecheckAfter: hook.Next(since)}
}

func (r *hookRun) failedError(found hookObject, why string) error {
	return &installation.HookFailedError{
		Event: r.hooks.Progress.Event(), Object: found.item.Key, Why: why,
		Next: r.hooks.Progress.Remedy(found.Hook), RetryIn: r.hooks.Progress.RetryIn(r.applier.config.Now()),
	}
}
