package applier

import (
	"context"
	"fmt"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/client-go/dynamic"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/turn"
)

// LetGo is for an extension that is deleted and whose content is to stay. It takes the
// owner off every object and record from which the garbage collector has not done so:
// one that was written a moment ago, or that is of a kind which the collector does not
// know yet. Such objects would go when the extension does. Of the others it only reads
// that they are free.
//
// Beside an object that was being replaced, it is the one write to content after an
// extension was deleted.
func (a *Applier) LetGo(ctx context.Context, owner object.Owner) error {
	client, err := impersonation.As(a.clients, owner.Account(), dynamic.NewForConfigAndClient)
	if err != nil {
		return err
	}
	history, err := a.histories.All(ctx, owner)
	if err != nil {
		return err
	}
	before, err := history.Objects(ctx, release.None)
	if err != nil {
		return err
	}
	planner := planner{client: client, mapper: a.config.Mapper, owner: owner}
	known, err := planner.known(before)
	if err != nil {
		return err
	}
	if len(known) > largeRepair {
		if err := turn.Take(ctx); err != nil {
			return err
		}
	}
	var steps []*step
	for _, item := range known {
		steps = append(steps, &step{Item: item})
	}
	if err := newObjectsError(eachStep(ctx, steps, planner.disown, "letting go of")); err != nil {
		return err
	}
	return history.Disown(ctx)
}

func (p *planner) disown(ctx context.Context, s *step) error {
	if err := s.read(ctx, p.client); err != nil || s.state == absent {
		return err
	}
	return disown(ctx, p.client, p.owner, s)
}

// disown tries again when the object is changed at the same time, most likely by the
// garbage collector.
func disown(ctx context.Context, client dynamic.Interface, owner object.Owner, s *step) error {
	for range maxRereads {
		left := owner.OtherReferences(s.live)
		if len(left) == len(s.live.GetOwnerReferences()) {
			return nil
		}
		patch, err := object.OwnersPatch(s.live, left)
		if err != nil {
			return err
		}
		options := metav1.PatchOptions{FieldManager: object.FieldManager}
		_, err = resourceOf(client, s.Item).Patch(ctx, s.Key.Name, patch.Kind, patch.Data, options)
		if err == nil || apierrors.IsNotFound(err) {
			return nil
		}
		if !apierrors.IsConflict(err) {
			return err
		}
		if err := s.read(ctx, client); err != nil || s.state == absent {
			return err
		}
	}
	return fmt.Errorf("%s is changed all the time", s.Key)
}
