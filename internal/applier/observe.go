package applier

import (
	"context"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
)

// Observe says what is installed. It asks the API server only when this process
// does not know it already. Of what an earlier process was doing when it died,
// it removes the parts of records that nothing refers to.
func (a *Applier) Observe(ctx context.Context, owner object.Owner) (installation.State, error) {
	known := a.memory(owner)
	if known.recorded != nil {
		return *known.recorded, nil
	}
	history, err := a.history(ctx, owner)
	if err != nil {
		return installation.State{}, err
	}
	state, err := a.observe(ctx, history)
	if err != nil {
		return installation.State{}, err
	}
	known.recorded, known.size = &state, history.DeployedSize()
	return state, nil
}

// observe keeps the release that it reads for the operation that follows.
func (a *Applier) observe(ctx context.Context, history *release.History) (installation.State, error) {
	defer a.reconsider(history)
	if err := history.Sweep(ctx); err != nil {
		return installation.State{}, err
	}
	return history.State(ctx)
}

// reconsider is for the end of whatever has to do with records: those that are in
// doubt are read anew, and nothing that rests on them counts any longer.
func (a *Applier) reconsider(history *release.History) {
	if !history.IsInvalid() {
		return
	}
	a.histories.Drop(history.Owner().Name)
	known := a.memory(history.Owner())
	known.history = nil
	known.unsettle()
}
