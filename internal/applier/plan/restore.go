package plan

import (
	"context"
	"errors"
	"slices"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// Restore writes the objects of a repair, wave by wave. An object that cannot be written does not stop the others: all of
// them were installed before, so no object has to wait for another one. The error names every object that was not
// written, and includes [Plan.Blocked]. Restore stops early if the extension is being deleted, or if ctx ends.
func (e *Executor) Restore(ctx context.Context, plan *Plan) error {
	var failures []ObjectFailure
	for _, wave := range wavesOf(plan.Steps) {
		failed := e.restoreWave(ctx, wave)
		failures = append(failures, failed...)
		if ctx.Err() != nil || slices.ContainsFunc(failed, isOwnerGone) {
			break
		}
	}
	return errors.Join(plan.conflicts, newObjectsError(slices.Concat(plan.unread, failures)))
}

func isOwnerGone(failure ObjectFailure) bool { return errors.Is(failure.Err, object.ErrOwnerGone) }

// restoreWave writes the objects of one wave, except blocked objects and objects of kinds whose CRD could not be written.
func (e *Executor) restoreWave(ctx context.Context, wave []*Step) []ObjectFailure {
	for _, s := range wave {
		if s.blocked {
			e.failed = append(e.failed, s)
		}
	}
	isLeftOut := func(s *Step) bool {
		return s.blocked || s.definition != nil && s.state == absent && slices.Contains(e.failed, s.definition)
	}
	wave = slices.DeleteFunc(wave, isLeftOut)
	failures := e.awaitKinds(ctx, wave)
	e.noteFailed(wave, failures)
	wave = slices.DeleteFunc(wave, isLeftOut)
	failed := eachStep(ctx, wave, e.write, "applying")
	e.noteFailed(wave, failed)
	return append(failures, failed...)
}

// noteFailed adds to e.failed the steps of a wave, and the steps of their CRDs, that failures name.
func (e *Executor) noteFailed(wave []*Step, failures []ObjectFailure) {
	for _, s := range wave {
		for _, one := range []*Step{s, s.definition} {
			if one != nil && slices.ContainsFunc(failures, func(failure ObjectFailure) bool { return failure.Object == one.Key }) {
				e.failed = append(e.failed, one)
			}
		}
	}
}

// HasFailed reports whether [Executor.Restore] could not write an object that a function selects.
func (e *Executor) HasFailed(selects func(*unstructured.Unstructured) bool) bool {
	return slices.ContainsFunc(e.failed, func(s *Step) bool { return selects(s.Object) })
}
