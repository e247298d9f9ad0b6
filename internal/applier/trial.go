package applier

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// trial has the API server judge writes and not carry them out: it asks
// authorization, validation, quotas and admission.
func (p *planner) trial() writer {
	return writer{client: p.client, owner: p.owner, dryRun: []string{metav1.DryRunAll}}
}

// look finds out what is there. An object that no revision has had is most likely
// not: instead of being read it is created on trial, which tells as much and
// whether it may be. All failures are in the error.
func (p *planner) look(ctx context.Context, plan *plan) error {
	var known, unheard []*step
	for i := range plan.steps {
		s := &plan.steps[i]
		switch {
		case s.state != unread:
		case s.before == nil && !plan.ground.carries(s):
			unheard = append(unheard, s)
		default:
			known = append(known, s)
		}
	}
	for i := range plan.prune {
		if s := &plan.prune[i]; s.state == unread {
			known = append(known, s)
		}
	}
	failures := eachStep(ctx, unheard, p.tryNew, "trying to create")
	return newObjectsError(append(failures, eachStep(ctx, known, p.read, "reading")...))
}

// tryNew reads an object after all if it is there, or if it cannot be tried.
func (p *planner) tryNew(ctx context.Context, s *step) error {
	_, err := p.trial().create(ctx, s)
	s.dryRun = !apierrors.IsAlreadyExists(err)
	if !s.dryRun || isUntriable(err) {
		return p.read(ctx, s)
	}
	s.state = absent
	return err
}

// isUntriable says that a trial has told nothing: so the API server answers when a
// webhook that has side effects is concerned. It has the same answer to objects
// that it cannot decode, which then fail when they are written.
func isUntriable(err error) bool { return apierrors.IsBadRequest(err) }

// rehearse tries the writes that were not tried yet. All failures are in the error.
func (p *planner) rehearse(ctx context.Context, plan *plan) error {
	var untried []*step
	for i := range plan.steps {
		if s := &plan.steps[i]; s.state != untouched && !s.dryRun && isWorthATrial(s) && !plan.ground.carries(s) {
			untried = append(untried, s)
		}
	}
	trial := p.trial()
	return newObjectsError(eachStep(ctx, untried, func(ctx context.Context, s *step) error {
		_, err := trial.write(ctx, s)
		if isUntriable(err) {
			return nil
		}
		return err
	}, "trying to write"))
}

// isWorthATrial leaves out changes to plain data. Hardly anything but an object that
// declares itself immutable can be in their way, and bundles have many.
func isWorthATrial(s *step) bool {
	if s.state == absent || s.Key.Group != corev1.GroupName {
		return true
	}
	switch s.Key.Kind {
	case "ConfigMap", "Secret", "ServiceAccount":
		immutable, _, _ := unstructured.NestedBool(s.live.Object, "immutable")
		return immutable
	}
	return true
}
