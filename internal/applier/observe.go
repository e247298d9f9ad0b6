package applier

import (
	"context"

	"helm.sh/helm/v3/pkg/release"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// State is what the records say about an extension.
type State struct {
	// Installed is the revision whose content is on the cluster; nil for none.
	Installed *Revision

	// Unfinished says that a revision after the installed one was begun and has
	// left the content somewhere between the two.
	Unfinished bool
}

// Observe says what is installed. It asks the API server only when this process
// does not know it already. Of what an earlier process was doing when it died,
// it removes the parts of records that nothing refers to.
func (a *Applier) Observe(ctx context.Context, owner object.Owner) (State, error) {
	known := a.state(owner)
	if state, ok := known.record(); ok {
		return state, nil
	}
	history, err := a.histories.of(ctx, owner)
	if err != nil {
		return State{}, err
	}
	state, err := a.observe(ctx, history)
	if err != nil {
		return State{}, err
	}
	known.setRecord(state, history.deployedSize())
	return state, nil
}

// observe keeps the release that it reads for the operation that follows.
func (a *Applier) observe(ctx context.Context, history *history) (State, error) {
	defer a.reconsider(history)
	if err := history.sweep(ctx); err != nil {
		return State{}, err
	}
	return stateOf(ctx, history)
}

// reconsider is for the end of whatever has to do with records: those that are in
// doubt are read anew, and nothing that rests on them counts any longer.
func (a *Applier) reconsider(history *history) {
	if !history.doubtful {
		return
	}
	a.histories.drop(history.records.owner.Name)
	a.state(history.records.owner).unsettle()
}

func stateOf(ctx context.Context, history *history) (State, error) {
	installed, err := history.installed(ctx)
	if err != nil || installed == nil {
		return State{Unfinished: len(history.entries) > 0}, err
	}
	revision := revisionFrom(installed)
	last := history.entries[len(history.entries)-1]
	return State{
		Installed:  &revision,
		Unfinished: last.revision != installed.Version || last.status != release.StatusDeployed,
	}, nil
}
