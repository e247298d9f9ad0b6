package applier

import (
	"context"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/release"
)

// Observe says what is installed. It asks the API server only if this process does not
// know it already. It also deletes chunks of records that nothing refers to: a process
// that died while it wrote a record has left them.
func (a *Applier) Observe(ctx context.Context, owner object.Owner) (installation.State, error) {
	known := a.memory(owner)
	if known.history != nil && known.history.Owner().Imported && !owner.Imported {
		// migrate helm finish has labelled the objects, and their manifests in the records.
		a.dropRecords(owner)
	}
	if known.state != nil {
		return *known.state, nil
	}
	history, err := a.history(ctx, owner)
	if err != nil {
		return installation.State{}, err
	}
	state, err := a.observe(ctx, history)
	if err != nil {
		return installation.State{}, err
	}
	known.state, known.size = &state, history.DeployedSize()
	return state, nil
}

// observe keeps what it reads of the records for the operation that follows.
func (a *Applier) observe(ctx context.Context, history *release.History) (installation.State, error) {
	defer a.dropInvalid(history)
	if err := history.Sweep(ctx); err != nil {
		return installation.State{}, err
	}
	return history.State(ctx)
}

// dropInvalid is called after everything that reads or writes records. If they turned out
// to be invalid, they are forgotten together with all that was concluded from them.
func (a *Applier) dropInvalid(history *release.History) {
	if history.IsInvalid() {
		a.dropRecords(history.Owner())
	}
}

func (a *Applier) dropRecords(owner object.Owner) {
	a.histories.Drop(owner.Name)
	known := a.memory(owner)
	known.history = nil
	known.invalidate()
}
