package plan

import (
	"context"
	"maps"
	"reflect"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Foresee says what a plan would come to, object by object, in the order of their keys.
// Unlike the checks before an operation it goes on with all others where one object cannot
// be had: whoever asks wants the whole picture, and may have fewer rights than the
// ServiceAccount. Each object is read, and each change is tried in a dry run; nothing is
// written. Objects that are dropped and not there, or no longer the extension's, are left out.
func (p *Planner) Foresee(ctx context.Context, plan *Plan) []object.Trial {
	steps, dropped := make([]*Step, 0, len(plan.Steps)+len(plan.prune)), map[object.Key]bool{}
	for i := range plan.Steps {
		steps = append(steps, &plan.Steps[i])
	}
	for i := range plan.prune {
		steps = append(steps, &plan.prune[i])
		dropped[plan.prune[i].Key] = true
	}
	trials := make(map[object.Key]*object.Trial, len(steps))
	for _, s := range steps {
		trials[s.Key] = &object.Trial{Key: s.Key, Change: object.Unchanged}
	}
	wanted := len(plan.Steps)
	failures := eachStep(ctx, steps[wanted:], func(ctx context.Context, s *Step) error {
		return p.foreseeRemoval(ctx, s, trials[s.Key])
	}, "trying")
	failures = append(failures, eachStep(ctx, steps[:wanted], func(ctx context.Context, s *Step) error {
		return p.foresee(ctx, plan, s, trials[s.Key])
	}, "trying")...)
	failures = p.unblock(ctx, plan, failures)
	if tolerated, err := plan.toleratedApart(ctx, failures); err == nil {
		failures = tolerated
	}
	for _, failure := range failures {
		trials[failure.Object].Err = failure.Refusal()
	}
	for i := range plan.Steps {
		s := &plan.Steps[i]
		if len(s.blockers) > 0 {
			trials[s.Key].Untried = object.UntriedOwn
		}
		if s.isLeft() {
			*trials[s.Key] = object.Trial{Key: s.Key, Change: object.Unchanged, Live: s.Live, After: s.Live}
		}
	}
	var found []object.Trial
	for key, trial := range trials {
		if !dropped[key] || trial.Change != object.Unchanged || trial.Err != nil {
			found = append(found, *trial)
		}
	}
	slices.SortFunc(found, func(a, b object.Trial) int { return a.Key.Compare(b.Key) })
	return found
}

// foreseeRemoval takes an object that may not be read for one that is there.
func (p *Planner) foreseeRemoval(ctx context.Context, s *Step, trial *object.Trial) error {
	err := p.read(ctx, s)
	switch {
	case object.IsLackOfRights(err):
		trial.Unread, trial.Untried, trial.Change, trial.Live = true, object.UntriedForbidden, s.removal(), s.Object
		return nil
	case err != nil:
		return err
	case s.Live != nil && s.ownedBy(p.Owner):
		trial.Change, trial.Live = s.removal(), s.Live
	}
	return nil
}

func (p *Planner) foresee(ctx context.Context, plan *Plan, s *Step, trial *object.Trial) error {
	err := p.read(ctx, s)
	switch {
	case object.IsLackOfRights(err):
		trial.Unread, err = true, nil
		p.guessLive(s)
	case err != nil:
		return err
	}
	if s.isDone() {
		return nil
	}
	trial.Live = s.Live
	// What a predecessor still owns becomes the extension's when that has left it.
	if s.Live != nil && !s.mayHave(p.Owner) && !p.Owner.Predecessor.Had(s.Live) {
		trial.Holder = new(object.HolderOf(s.Live))
		return nil
	}
	trial.Adopted = s.Live != nil && !trial.Unread && !p.Owner.Has(s.Live)
	var patch object.Patch
	if s.state == absent {
		trial.Change, trial.After = object.Created, s.Object
	} else {
		if patch, err = s.threeWay().Patch(); err != nil {
			return err
		}
		if patch.IsEmpty() {
			trial.After = s.Live
			return nil
		}
		trial.Change, trial.Difference = object.Updated, patch.Difference(s.Live)
	}
	if trial.Untried = p.untried(plan, s, trial); trial.Untried == "" {
		err = p.try(ctx, s, trial)
	}
	if trial.Untried != "" && s.state != absent {
		trial.After, err = patch.AppliedTo(s.Live)
	}
	return err
}

// guessLive takes what the revision before wanted for what is there.
func (p *Planner) guessLive(s *Step) {
	s.state = absent
	if s.before != nil {
		s.state, s.Live = read, s.before.DeepCopy()
		p.Owner.Stamp(s.Live)
	}
}

// untried says why there is no use in a dry run.
func (p *Planner) untried(plan *Plan, s *Step, trial *object.Trial) object.Untried {
	switch {
	case trial.Unread:
		return object.UntriedForbidden
	case plan.prerequisites.concern(s):
		return object.UntriedOwn
	}
	return ""
}

// try makes the change in a dry run.
func (p *Planner) try(ctx context.Context, s *Step, trial *object.Trial) error {
	live := s.Live
	after, err := p.dryRunWriter().write(ctx, s)
	switch {
	case isInconclusive(err):
		trial.Untried = object.UntriedInconclusive
	case object.IsLackOfRights(err):
		trial.Untried = object.UntriedForbidden
	case err != nil:
		return err
	case len(s.immutable) > 0:
		trial.Difference = object.Difference{Replaced: true, Fields: s.immutable}
		trial.After = s.Object
	case live != nil && isStoredSame(after, live):
		trial.Change, trial.Difference, trial.After = object.Unchanged, object.Difference{}, live
	case live != nil:
		trial.After = withoutAllocated(after, live, s.Object)
	}
	return nil
}

// isStoredSame says that a change changes nothing. The version of the object does not tell: it
// is the same after all dry runs.
func isStoredSame(after, live *unstructured.Unstructured) bool {
	content := func(of *unstructured.Unstructured) map[string]any {
		shared := maps.Clone(of.Object)
		metadata, _ := shared["metadata"].(map[string]any)
		metadata = maps.Clone(metadata)
		delete(metadata, "managedFields")
		delete(metadata, "resourceVersion")
		shared["metadata"] = metadata
		return shared
	}
	return reflect.DeepEqual(content(after), content(live))
}

// withoutAllocated drops from a Service what the API server has allocated for this dry run
// alone: the next one has other addresses and ports.
func withoutAllocated(after, live, wanted *unstructured.Unstructured) *unstructured.Unstructured {
	if after.GroupVersionKind().GroupKind() != object.ServiceKind {
		return after
	}
	isKnown := func(fields ...string) bool {
		_, isLive, _ := unstructured.NestedFieldNoCopy(live.Object, fields...)
		_, isWanted, _ := unstructured.NestedFieldNoCopy(wanted.Object, fields...)
		return isLive || isWanted
	}
	for _, field := range []string{"clusterIP", "clusterIPs", "healthCheckNodePort"} {
		if !isKnown("spec", field) {
			unstructured.RemoveNestedField(after.Object, "spec", field)
		}
	}
	ports, _, _ := unstructured.NestedFieldNoCopy(after.Object, "spec", "ports")
	items, _ := ports.([]any)
	for _, item := range items {
		port, isObject := item.(map[string]any)
		if isObject && !hasNodePort(live, port["nodePort"]) && !hasNodePort(wanted, port["nodePort"]) {
			delete(port, "nodePort")
		}
	}
	return after
}

// hasNodePort says that a Service has a port of that number.
func hasNodePort(service *unstructured.Unstructured, number any) bool {
	ports, _, _ := unstructured.NestedFieldNoCopy(service.Object, "spec", "ports")
	items, _ := ports.([]any)
	return slices.ContainsFunc(items, func(item any) bool {
		port, _ := item.(map[string]any)
		return number != nil && port["nodePort"] == number
	})
}
