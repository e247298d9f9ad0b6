package applier

import (
	"context"
	"errors"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// Foresee says what [Applier.Apply] would come to, as the ServiceAccount: each object is read,
// and each change is tried in a dry run; nothing is written. What speaks against the operation
// is part of what it says. It fails where it cannot know.
func (a *Applier) Foresee(ctx context.Context, owner object.Owner, desired installation.Desired) (installation.Prospect, error) {
	planner, err := a.planner(owner)
	if err != nil {
		return installation.Prospect{}, err
	}
	history, err := a.history(ctx, owner)
	if err != nil {
		return installation.Prospect{}, err
	}
	defer a.dropInvalid(history)
	defer history.Trim()
	planned, _, before, err := a.planContent(ctx, planner, history, desired)
	if err != nil {
		return installation.Prospect{}, err
	}
	var found installation.Prospect
	desired.Preflight.Growth = preflight.Growth{Withheld: true} // or else nothing is said of what grows
	_, err = a.checkPermissions(ctx, history, desired, before)
	missing, isMissing := errors.AsType[*permission.MissingError](err)
	growth, isGrowth := errors.AsType[*preflight.ApprovalError](err)
	switch {
	case isMissing:
		found.Missing = missing.Rules
	case isGrowth:
		found.Gains = growth.Gains
	case err != nil:
		return installation.Prospect{}, err
	}
	found.Trials = planner.Foresee(ctx, planned)
	if found.Conflicts, err = a.groupConflicts(ctx, planned); err != nil {
		return installation.Prospect{}, err
	}
	found.Verdict, err = a.judgeDefinitions(ctx, desired.Preflight, planned)
	return found, err
}
