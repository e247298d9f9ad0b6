package applier

import (
	"context"

	"helm.sh/helm/v3/pkg/release"
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
// does not know it already.
func (a *Applier) Observe(ctx context.Context, owner Extension) (State, error) {
	known := a.state(owner)
	if state, ok := known.record(); ok {
		return state, nil
	}
	history, err := loadHistory(ctx, a.records(owner))
	if err != nil {
		return State{}, err
	}
	state, err := stateOf(ctx, history)
	if err != nil {
		return State{}, err
	}
	known.setRecord(state)
	return state, nil
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
		Unfinished: revisionOf(last.index) != installed.Version || last.status() != release.StatusDeployed,
	}, nil
}
