package plan

import (
	"context"
	"fmt"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Orphan removes the owner from objects. Objects that it does not own are only read. It does not
// ask the guard, which refuses writes for an extension that is being deleted.
func (p *Planner) Orphan(ctx context.Context, items []object.Item) error {
	steps := stepsOf(items)
	failures := eachStep(ctx, steps, p.orphanOne, "letting go of")
	logOrphaned(ctx, steps)
	return newObjectsError(failures)
}

// maxLoggedOrphans is how many objects that were orphaned have lines of their own.
const maxLoggedOrphans = 100

func logOrphaned(ctx context.Context, steps []*Step) {
	logger, count := log.FromContext(ctx), 0
	for _, s := range steps {
		if s.written == nil {
			continue
		}
		if count++; count <= maxLoggedOrphans {
			logger.Info("took the owner off", "object", s.Key.Logged())
		}
	}
	if more := count - maxLoggedOrphans; more > 0 {
		logger.Info("took the owner off more", "objects", more)
	}
}

func (p *Planner) orphanOne(ctx context.Context, s *Step) error {
	return p.writer().mark(ctx, s, func(live *unstructured.Unstructured) (object.Patch, error) {
		left := p.Owner.OtherReferences(live)
		if len(left) == len(live.GetOwnerReferences()) {
			return object.Patch{}, nil
		}
		return object.OwnersPatch(live, left)
	})
}

// Release removes the owner's marks from objects that the extension owns, and returns their keys,
// sorted. With an error the keys are also of objects that could not be read. It does not ask the guard,
// which refuses writes for an extension that is being deleted.
func (p *Planner) Release(ctx context.Context, items []object.Item) ([]object.Key, error) {
	steps := stepsOf(items)
	failures := eachStep(ctx, steps, func(ctx context.Context, s *Step) error {
		return p.writer().mark(ctx, s, p.Owner.ReleasePatch)
	}, "releasing")
	kept := keysOf(failures)
	for _, s := range steps {
		if s.isOurs(p.Owner) && !slices.Contains(kept, s.Key) {
			kept = append(kept, s.Key)
		}
	}
	slices.SortFunc(kept, object.Key.Compare)
	return kept, newObjectsError(failures)
}

// Claim sets the owner's marks on objects that were imported from Helm, see [object.IsLabelled]. With an
// error it returns the keys of the objects for which this failed, sorted.
func (p *Planner) Claim(ctx context.Context, items []object.Item) (unclaimed []object.Key, err error) {
	failures := eachStep(ctx, stepsOf(items), func(ctx context.Context, s *Step) error {
		return p.writer().mark(ctx, s, p.Owner.ClaimPatch)
	}, "setting the owner of")
	unclaimed = keysOf(failures)
	slices.SortFunc(unclaimed, object.Key.Compare)
	return unclaimed, newObjectsError(failures)
}

func keysOf(failures []ObjectFailure) []object.Key {
	var keys []object.Key
	for _, failure := range failures {
		keys = append(keys, failure.Object)
	}
	return keys
}

func stepsOf(items []object.Item) []*Step {
	steps := make([]*Step, 0, len(items))
	for _, item := range items {
		steps = append(steps, &Step{Item: item})
	}
	return steps
}

// mark sends a patch of the owner's marks to an object that the extension owns, unless the patch is
// empty. It tries again when the object is changed at the same time, most likely by the
// garbage collector.
func (w writer) mark(ctx context.Context, s *Step, patchOf func(live *unstructured.Unstructured) (object.Patch, error)) error {
	for range maxRereads {
		if err := s.read(ctx, w.client, w.owner); err != nil || !s.isOurs(w.owner) {
			return err
		}
		patch, err := patchOf(s.Live)
		if err != nil || patch.IsEmpty() {
			return err
		}
		options := metav1.PatchOptions{FieldManager: object.FieldManager}
		_, err = resourceOf(w.client, s.Item).Patch(ctx, s.Key.Name, patch.Kind, patch.Data, options)
		if err == nil {
			s.written = &object.Difference{OnlyOwners: true}
		}
		switch {
		case apierrors.IsNotFound(err):
			s.state, s.Live = absent, nil
			return nil
		case err == nil || !apierrors.IsConflict(err):
			return err
		}
	}
	return fmt.Errorf("%s is changed all the time", s.Key)
}

// isOurs reports whether the live object was found, and the extension owns it or is one of its owners.
func (s *Step) isOurs(owner object.Owner) bool {
	return s.Live != nil && (s.ownedBy(owner) || owner.IsOwnerOf(s.Live))
}
