package plan

import (
	"context"
	"errors"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// dryRunWriter makes writes in a dry run: the API server asks authorization, validation,
// quotas and admission, and stores nothing.
func (p *Planner) dryRunWriter() writer {
	return writer{client: p.client, owner: p.Owner, dryRun: []string{metav1.DryRunAll}}
}

// readLive finds out the state of the objects. An object that no revision has had does most
// likely not exist. So it is not read but created in a dry run, which tells whether it
// exists, and whether it may be created. All failures are in the error.
func (p *Planner) readLive(ctx context.Context, plan *Plan) error {
	var known, unknown []*Step
	for i := range plan.Steps {
		s := &plan.Steps[i]
		switch {
		case s.state != unread:
		case s.before == nil && !plan.prerequisites.concern(s):
			unknown = append(unknown, s)
		default:
			known = append(known, s)
		}
	}
	for i := range plan.prune {
		if s := &plan.prune[i]; s.state == unread {
			known = append(known, s)
		}
	}
	isFirst := len(plan.prune) == 0 && !slices.ContainsFunc(plan.Steps, func(s Step) bool { return s.before != nil })
	failures := eachStep(ctx, unknown, func(ctx context.Context, s *Step) error { return p.dryRunCreate(ctx, s, isFirst) }, "trying to create")
	return newObjectsError(append(failures, eachStep(ctx, known, p.read, "reading")...))
}

// dryRunCreate reads the object after all if it exists, or if the dry run is inconclusive. If another object of the
// extension may block it, [Planner.DryRun] tries again, when all others were read. At the first install, there is none.
func (p *Planner) dryRunCreate(ctx context.Context, s *Step, isFirst bool) error {
	_, err := p.dryRunWriter().create(ctx, s)
	s.dryRunDone = !apierrors.IsAlreadyExists(err) && (isFirst || !mayCollide(err))
	if !s.dryRunDone || isInconclusive(err) {
		return p.read(ctx, s)
	}
	s.state = absent
	return err
}

// isInconclusive says that a dry run does not tell what a write would come to. The API
// server answers so if a webhook with side effects would be called. It has the same answer
// for objects that it cannot decode; those fail when they are written.
func isInconclusive(err error) bool { return apierrors.IsBadRequest(err) }

// DryRun makes the creations and changes of the plan in a dry run, except for those that
// were made in one before, those of kinds that are hardly ever refused, and those that
// would be inconclusive, see [prerequisites]. All failures are in the error, except for those of [Plan.Refusals].
func (p *Planner) DryRun(ctx context.Context, plan *Plan) error {
	var pending []*Step
	for i := range plan.Steps {
		if s := &plan.Steps[i]; s.state != untouched && !s.isDone() && !s.dryRunDone && isWorthADryRun(s) && !plan.prerequisites.concern(s) {
			pending = append(pending, s)
		}
	}
	writer := p.dryRunWriter()
	failures := eachStep(ctx, pending, func(ctx context.Context, s *Step) error {
		_, err := writer.write(ctx, s)
		if isInconclusive(err) {
			return nil
		}
		return err
	}, "trying to write")
	failures, err := plan.toleratedApart(ctx, p.unblock(ctx, plan, failures))
	return errors.Join(newObjectsError(failures), err)
}

// isWorthADryRun leaves out changes to plain data: bundles have many such objects, and the
// API server refuses hardly any change to them, unless the object is immutable.
func isWorthADryRun(s *Step) bool {
	if s.state == absent || s.Key.Group != corev1.GroupName {
		return true
	}
	switch s.Key.Kind {
	case "ConfigMap", "Secret", "ServiceAccount":
		immutable, _, _ := unstructured.NestedBool(s.Live.Object, "immutable")
		return immutable
	}
	return true
}
