package plan

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/dynamic"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preflight"
)

// writer writes single objects, in earnest or in a dry run.
type writer struct {
	client dynamic.Interface
	owner  object.Owner

	// guard is asked before each write; nil only for dry runs.
	guard *Guard

	// dryRun is that of the requests' options: nothing to write.
	dryRun []string
}

// maxRereads is how often an object is read again that others change at the same time.
const maxRereads = 3

// allow asks the guard before each write. A dry run writes nothing, so it needs no guard.
func (w writer) allow(ctx context.Context) error {
	if w.isDryRun() {
		return nil
	}
	return w.guard.Ask(ctx)
}

// askAgain is [Guard.askAgain], which a dry run does not need either.
func (w writer) askAgain(ctx context.Context) error {
	if w.isDryRun() {
		return nil
	}
	return w.guard.askAgain(ctx)
}

func (w writer) isDryRun() bool { return len(w.dryRun) > 0 }

// write makes one object what a revision wants, and gives the object after that. It sends
// no request if there is nothing to change, and notes what it was that it has changed. It
// fails with [*object.ConflictError] if an object that is cached turns out to be somebody
// else's.
func (w writer) write(ctx context.Context, s *Step) (*unstructured.Unstructured, error) {
	live, err := w.createOrPatch(ctx, s)
	for range maxRereads {
		if !s.isStale(err) {
			break
		}
		if err := w.reread(ctx, s); err != nil {
			return nil, err
		}
		live, err = w.createOrPatch(ctx, s)
	}
	if err != nil {
		return w.replaceIfImmutable(ctx, s, err)
	}
	return live, nil
}

func (w writer) createOrPatch(ctx context.Context, s *Step) (*unstructured.Unstructured, error) {
	if s.state == absent {
		return w.create(ctx, s)
	}
	patch, err := s.threeWay().Patch()
	if err != nil {
		return nil, err
	}
	switch {
	case patch.IsEmpty() && s.state == cached:
		// What is cached stands for the object, but not for its state and its fingerprint.
		if err := w.reread(ctx, s); err != nil {
			return nil, err
		}
		return w.createOrPatch(ctx, s)
	case patch.IsEmpty():
		return s.Live, nil
	}
	live, err := w.send(ctx, s, patch)
	if apierrors.IsInvalid(err) && s.keepEarlier() {
		return w.createOrPatch(ctx, s)
	}
	if s.state != cached && apierrors.IsInvalid(err) && preflight.Immutable(s.Key.GroupKind, s.Live, err) == nil {
		return w.override(ctx, s, err)
	}
	return live, err
}

// override sends a second patch after the API server has refused the first one as invalid: what others have set may
// exclude what the revision sets.
func (w writer) override(ctx context.Context, s *Step, refusal error) (*unstructured.Unstructured, error) {
	patch, err := s.threeWay().Override(refusal)
	if err != nil {
		return nil, errors.Join(refusal, err)
	}
	if !patch.IsEmpty() {
		live, err := w.send(ctx, s, patch)
		if !apierrors.IsInvalid(err) {
			return live, err
		}
		refusal = err
	}
	return nil, s.threeWay().RefusedAs(refusal, patch)
}

// send makes the patch depend on the resource version that it was made from. Without that,
// a change that somebody makes in between would stay, and be taken for what was written. A
// dry run of an object that was read need not be that exact.
func (w writer) send(ctx context.Context, s *Step, patch object.Patch) (*unstructured.Unstructured, error) {
	if patch.SetsOwner() {
		if err := w.askAgain(ctx); err != nil {
			return nil, err
		}
	}
	sent := patch
	if s.state == cached || !w.isDryRun() {
		var err error
		if sent, err = patch.OnlyFor(s.Live.GetResourceVersion()); err != nil {
			return nil, err
		}
	}
	live, err := w.patch(ctx, s, sent)
	if err == nil && !w.isDryRun() {
		s.written = new(patch.Difference(s.Live))
	}
	return live, err
}

func (w writer) patch(ctx context.Context, s *Step, patch object.Patch) (*unstructured.Unstructured, error) {
	if err := w.allow(ctx); err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{FieldManager: object.FieldManager, DryRun: w.dryRun}
	return resourceOf(w.client, s.Item).Patch(ctx, s.Key.Name, patch.Kind, patch.Data, options)
}

// create fails if the object exists by now. The next pass reads it, and checks whose it is.
func (w writer) create(ctx context.Context, s *Step) (*unstructured.Unstructured, error) {
	if err := w.allow(ctx); err != nil {
		return nil, err
	}
	options := metav1.CreateOptions{FieldManager: object.FieldManager, DryRun: w.dryRun}
	made, err := resourceOf(w.client, s.Item).Create(ctx, s.Object, options)
	if err == nil && !w.isDryRun() {
		s.written = &object.Difference{Missing: true}
	}
	return made, err
}

// remove deletes an object that the revision has dropped, in the background. It does not
// delete an object that somebody else has adopted by now. The guard was asked just before.
func (w writer) remove(ctx context.Context, s *Step) (deleted bool, err error) {
	err = w.deleteOwned(ctx, s)
	if _, theirs := errors.AsType[*object.ConflictError](err); theirs {
		return false, nil
	}
	return err == nil, err
}

// deleteOwned deletes an object. If it was changed since it was read, it is read again, the
// guard is asked again, and the object is deleted if the extension still owns it. It fails
// with [*object.ConflictError] if not.
func (w writer) deleteOwned(ctx context.Context, s *Step) error {
	err := w.delete(ctx, s)
	for range maxRereads {
		if !apierrors.IsConflict(err) {
			break
		}
		if err := w.reread(ctx, s); err != nil || s.state == absent {
			return err
		}
		if err := w.askAgain(ctx); err != nil {
			return err
		}
		err = w.delete(ctx, s)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// delete makes the request depend on the UID and the resource version that are known: what
// is deleted does not come back.
func (w writer) delete(ctx context.Context, s *Step) error {
	conditions := &metav1.Preconditions{UID: new(s.Live.GetUID()), ResourceVersion: new(s.Live.GetResourceVersion())}
	return resourceOf(w.client, s.Item).Delete(ctx, s.Key.Name, metav1.DeleteOptions{
		DryRun:            w.dryRun,
		Preconditions:     conditions,
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
}
