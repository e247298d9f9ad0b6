package plan

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Orphan removes the owner from objects. Objects that it does not own are only read. It
// does not ask the guard, which would refuse: the extension is being deleted.
func (p *Planner) Orphan(ctx context.Context, items []object.Item) error {
	steps := make([]*Step, 0, len(items))
	for _, item := range items {
		steps = append(steps, &Step{Item: item})
	}
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

// orphanOne tries again when the object is changed at the same time, most likely by the
// garbage collector.
func (p *Planner) orphanOne(ctx context.Context, s *Step) error {
	for range maxRereads {
		if err := p.read(ctx, s); err != nil || s.state == absent {
			return err
		}
		left := p.Owner.OtherReferences(s.Live)
		if len(left) == len(s.Live.GetOwnerReferences()) {
			return nil
		}
		patch, err := object.OwnersPatch(s.Live, left)
		if err != nil {
			return err
		}
		options := metav1.PatchOptions{FieldManager: object.FieldManager}
		_, err = resourceOf(p.client, s.Item).Patch(ctx, s.Key.Name, patch.Kind, patch.Data, options)
		if err == nil {
			s.written = &object.Difference{OnlyOwners: true}
		}
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return err
		}
	}
	return fmt.Errorf("%s is changed all the time", s.Key)
}
