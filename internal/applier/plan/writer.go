package plan

import (
	"context"
	"errors"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"k8s.io/client-go/dynamic"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// writer writes single objects, or has the API server say what it would make of
// that.
type writer struct {
	client dynamic.Interface
	owner  object.Owner

	// guard is asked before each write; nil only for dry runs.
	guard *Guard

	// dryRun is that of the requests' options: nothing to write.
	dryRun []string
}

// maxRereads is how often an object is read again that others change at the same
// time.
const maxRereads = 3

// allow asks whether the extension is still there to write for. Dry runs may always.
func (w writer) allow(ctx context.Context) error {
	if w.isDryRun() {
		return nil
	}
	return w.guard.Ask(ctx)
}

func (w writer) isDryRun() bool { return len(w.dryRun) > 0 }

// write brings one object to what a revision wants, and gives the object after it.
// It sends nothing when there is nothing to change. It fails with [*object.ConflictError]
// where an object that is cached turns out to be somebody else's.
func (w writer) write(ctx context.Context, s *Step) (*unstructured.Unstructured, error) {
	live, err := w.bring(ctx, s)
	for range maxRereads {
		if !s.isStale(err) && (s.state == absent || !apierrors.IsConflict(err)) {
			break
		}
		if err := w.reread(ctx, s); err != nil {
			return nil, err
		}
		live, err = w.bring(ctx, s)
	}
	if err != nil {
		return w.orReplace(ctx, s, err)
	}
	return live, nil
}

func (w writer) bring(ctx context.Context, s *Step) (*unstructured.Unstructured, error) {
	if s.state == absent {
		return w.create(ctx, s)
	}
	patch, err := s.threeWay().Patch()
	if err != nil {
		return nil, err
	}
	if patch.IsEmpty() {
		return s.Live, nil
	}
	live, err := w.send(ctx, s, patch)
	if s.state != cached && apierrors.IsInvalid(err) && patch.Kind == types.StrategicMergePatchType {
		// An entry of a list whose key somebody changed looks like one that they
		// have added, and can clash with ours.
		if patch, err = s.threeWay().ListReplacingPatch(); err == nil {
			live, err = w.send(ctx, s, patch)
		}
	}
	return live, err
}

// send has a patch refused for any other version of the object than the one that it was
// made from. What somebody changed in between would otherwise stay as it is, and be taken
// for what was written. Dry runs of what was read need not be that exact.
func (w writer) send(ctx context.Context, s *Step, patch object.Patch) (*unstructured.Unstructured, error) {
	if !w.isDryRun() && patch.SetsOwner() {
		if err := w.guard.askAgain(ctx); err != nil {
			return nil, err
		}
	}
	if s.state == cached || !w.isDryRun() {
		var err error
		if patch, err = patch.OnlyFor(s.Live.GetResourceVersion()); err != nil {
			return nil, err
		}
	}
	return w.patch(ctx, s, patch)
}

func (w writer) patch(ctx context.Context, s *Step, patch object.Patch) (*unstructured.Unstructured, error) {
	if err := w.allow(ctx); err != nil {
		return nil, err
	}
	options := metav1.PatchOptions{FieldManager: object.FieldManager, DryRun: w.dryRun}
	return resourceOf(w.client, s.Item).Patch(ctx, s.Key.Name, patch.Kind, patch.Data, options)
}

// create lets an object that appeared since the plan be: the next pass sees it
// and decides whose it is.
func (w writer) create(ctx context.Context, s *Step) (*unstructured.Unstructured, error) {
	if err := w.allow(ctx); err != nil {
		return nil, err
	}
	options := metav1.CreateOptions{FieldManager: object.FieldManager, DryRun: w.dryRun}
	return resourceOf(w.client, s.Item).Create(ctx, s.Object, options)
}

// remove deletes exactly the object that is known, in the background. It leaves an
// object that turns out to be somebody else's by now to them.
func (w writer) remove(ctx context.Context, s *Step) (deleted bool, err error) {
	err = w.deleteOwned(ctx, s)
	if _, theirs := errors.AsType[*object.ConflictError](err); theirs {
		return false, nil
	}
	return err == nil, err
}

// deleteOwned reads an object that was changed since it was read last once more, and
// deletes it if it is still the extension's. It fails with [*object.ConflictError] if not.
func (w writer) deleteOwned(ctx context.Context, s *Step) error {
	err := w.delete(ctx, s)
	for range maxRereads {
		if !apierrors.IsConflict(err) {
			break
		}
		if err := w.reread(ctx, s); err != nil || s.state == absent {
			return err
		}
		err = w.delete(ctx, s)
	}
	if apierrors.IsNotFound(err) {
		return nil
	}
	return err
}

// delete asks for the extension once more, and for exactly the object that is known:
// what is deleted does not come back.
func (w writer) delete(ctx context.Context, s *Step) error {
	if !w.isDryRun() {
		if err := w.guard.askAgain(ctx); err != nil {
			return err
		}
	}
	conditions := &metav1.Preconditions{UID: new(s.Live.GetUID()), ResourceVersion: new(s.Live.GetResourceVersion())}
	return resourceOf(w.client, s.Item).Delete(ctx, s.Key.Name, metav1.DeleteOptions{
		DryRun:            w.dryRun,
		Preconditions:     conditions,
		PropagationPolicy: new(metav1.DeletePropagationBackground),
	})
}
