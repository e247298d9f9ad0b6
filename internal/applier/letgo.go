package applier

import (
	"context"
	"maps"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
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
	planner, err := a.planner(owner)
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
	known, err := object.Known(a.config.Mapper, owner, before)
	if err != nil {
		return err
	}
	if len(known) > largeRepair {
		if err := turn.Take(ctx); err != nil {
			return err
		}
	}
	if err := planner.Disown(ctx, slices.Collect(maps.Values(known))); err != nil {
		return err
	}
	return history.Disown(ctx)
}
