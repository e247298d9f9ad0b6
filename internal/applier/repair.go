package applier

import (
	"context"
	"fmt"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// Repair brings objects of the installed revision back that are missing or
// differ. It asks nothing when none is under suspicion and no certificate is due
// to be renewed. Fields that others have set stay, as do objects that the extension no longer owns, which it reports
// as [*ConflictError]. Objects that are changed again each time are repaired ever
// more seldom, see [Result].
func (a *Applier) Repair(ctx context.Context, owner Extension) (Result, error) {
	known, now := a.state(owner), a.config.Now()
	suspects, all := known.suspects(now)
	if len(a.watches.denied(owner.Name)) > 0 && now.Sub(known.lookedAt()) >= recheckInterval {
		all = true
	}
	if !all && len(suspects) == 0 {
		return a.result(owner, nil), nil
	}
	objects, err := a.installedObjects(ctx, owner)
	if err != nil {
		return Result{}, err
	}
	client, err := a.clients.dynamic(owner.account())
	if err != nil {
		return Result{}, err
	}
	planner := planner{client: client, mapper: a.config.Mapper, owner: owner}
	if !all {
		objects = only(planner.known(objects), suspects)
	}
	plan, err := planner.plan(ctx, objects, nil)
	if err != nil {
		return Result{}, err
	}
	executor := newExecutor(client)
	kept, err := a.restore(ctx, executor, plan)
	known.noteRepairs(plan.steps, executor.outcome.changes, now)
	if err != nil {
		return Result{Changes: executor.outcome.changes, Began: true}, err
	}
	known.rest(now)
	if all {
		known.settle(executor.outcome.live, kept, a.config.Now())
		a.watches.follow(ctx, owner, plan.steps)
	} else {
		known.settleSome(executor.outcome.live, kept)
	}
	return a.result(owner, executor.outcome.changes), nil
}

func (a *Applier) restore(ctx context.Context, executor *executor, plan *plan) (certificates, error) {
	if err := executor.execute(ctx, plan); err != nil {
		return certificates{}, err
	}
	return a.certify(ctx, executor, plan.steps)
}

func (a *Applier) installedObjects(ctx context.Context, owner Extension) ([]*unstructured.Unstructured, error) {
	history, err := a.histories.of(ctx, owner)
	if err != nil {
		return nil, err
	}
	defer a.reconsider(history)
	defer history.letGo()
	installed, err := history.installed(ctx)
	if err != nil {
		return nil, err
	}
	if installed == nil {
		return nil, fmt.Errorf("nothing is recorded as installed for %q", owner.Name)
	}
	return objectsOf(installed.Manifest)
}

func only(known map[ObjectKey]item, keys []ObjectKey) []*unstructured.Unstructured {
	var objects []*unstructured.Unstructured
	for key, item := range known {
		if slices.Contains(keys, key) {
			objects = append(objects, item.object)
		}
	}
	return objects
}
