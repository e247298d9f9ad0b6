package plan

import (
	"context"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// dryRunWriter has the API server judge writes and not carry them out: it asks
// authorization, validation, quotas and admission.
func (p *Planner) dryRunWriter() writer {
	return writer{client: p.client, owner: p.Owner, dryRun: []string{metav1.DryRunAll}}
}

// readLive finds out what is there. An object that no revision has had is most likely
// not: instead of being read it is created as a dry run, which tells as much and
// whether it may be. All failures are in the error.
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
	failures := eachStep(ctx, unknown, p.dryRunCreate, "trying to create")
	return newObjectsError(append(failures, eachStep(ctx, known, p.read, "reading")...))
}

// dryRunCreate reads an object after all if it is there, or if a dry run tells nothing.
func (p *Planner) dryRunCreate(ctx context.Context, s *Step) error {
	_, err := p.dryRunWriter().create(ctx, s)
	s.judged = !apierrors.IsAlreadyExists(err)
	if !s.judged || isInconclusive(err) {
		return p.read(ctx, s)
	}
	s.state = absent
	return err
}

// isInconclusive says that a dry run has told nothing: so the API server answers when a
// webhook that has side effects is concerned. It has the same answer to objects
// that it cannot decode, which then fail when they are written.
func isInconclusive(err error) bool { return apierrors.IsBadRequest(err) }

// DryRun has the API server judge the writes that it has not judged yet. All failures are in the error.
func (p *Planner) DryRun(ctx context.Context, plan *Plan) error {
	var unjudged []*Step
	for i := range plan.Steps {
		if s := &plan.Steps[i]; s.state != untouched && !s.judged && isWorthADryRun(s) && !plan.prerequisites.concern(s) {
			unjudged = append(unjudged, s)
		}
	}
	writer := p.dryRunWriter()
	return newObjectsError(eachStep(ctx, unjudged, func(ctx context.Context, s *Step) error {
		_, err := writer.write(ctx, s)
		if isInconclusive(err) {
			return nil
		}
		return err
	}, "trying to write"))
}

// isWorthADryRun leaves out changes to plain data. Hardly anything but an object that
// declares itself immutable can be in their way, and bundles have many.
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
