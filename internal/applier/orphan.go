package applier

import (
	"context"
	"maps"
	"slices"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
	"github.com/clusterextensions/operator-controller/internal/turn"
)

// IsOrphaned says whether the garbage collector has orphaned what an extension owned that is
// being deleted. Its records tell, of which it knew before there was any content: the
// extension itself tells nothing any more once the collector is done.
func (a *Applier) IsOrphaned(ctx context.Context, owner object.Owner) (bool, error) {
	return a.histories.AreOrphaned(ctx, owner)
}

// Orphan is for an extension that is deleted and whose content is to stay. It removes the
// owner from objects and records where the garbage collector has not done so: the object
// was written a moment ago, or the collector does not know its kind yet. Such an object
// would be deleted with the extension. Objects that have no owner any more are only read.
//
// It is the one write to content after an extension was deleted, besides the end of a
// replacement that was under way.
func (a *Applier) Orphan(ctx context.Context, owner object.Owner) error {
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
	hooks, err := history.HookObjects(ctx)
	if err != nil {
		return err
	}
	known, err := object.Known(a.config.Mapper, owner, append(before, hooks...))
	if err != nil {
		return err
	}
	if len(known) > largeRepair {
		if err := turn.Take(ctx); err != nil {
			return err
		}
	}
	if err := planner.Orphan(ctx, slices.Collect(maps.Values(known))); err != nil {
		return err
	}
	return history.Orphan(ctx)
}
