package plan

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"

	apierrors "k8s.io/apimachinery/pkg/api/errors"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// toleratedApart returns the failures that stop an upgrade. A refusal does not stop it if the installed revision has
// the object with the same manifest: toleratedApart notes the refusal in the step, and the next repair reports it.
// Otherwise a user could block all upgrades with a change to one object that the API server then refuses.
func (p *Plan) toleratedApart(ctx context.Context, failures []ObjectFailure) ([]ObjectFailure, error) {
	isRefused := func(failure ObjectFailure) bool { return isLasting(failure.Err) }
	if p.Installed == nil || !slices.ContainsFunc(failures, isRefused) {
		return failures, nil
	}
	objects, err := p.Installed(ctx)
	if err != nil {
		return failures, err
	}
	installed, err := object.Known(p.mapper, p.Owner, objects)
	if err != nil {
		return failures, err
	}
	return slices.DeleteFunc(failures, func(failure ObjectFailure) bool {
		i := slices.IndexFunc(p.Steps, func(s Step) bool { return s.Key == failure.Object })
		if i < 0 || !isRefused(failure) {
			return false
		}
		s := &p.Steps[i]
		before, has := installed[s.Key]
		if !has || !isSameManifest(p.Owner, before.Object, s.Object) {
			return false
		}
		s.refusal = failure.Refusal()
		return true
	}), nil
}

// isLasting reports whether the API server, or a webhook that it called, has refused the object itself. It is false for
// transient answers, such as a conflict or too many requests.
func isLasting(err error) bool {
	status := apierrors.APIStatus(nil)
	if errors.Is(err, object.ErrOwnerGone) || !errors.As(err, &status) {
		return false
	}
	switch code := status.Status().Code; code {
	case http.StatusUnauthorized, http.StatusNotFound, http.StatusRequestTimeout, http.StatusConflict, http.StatusTooManyRequests:
		return false
	default: // webhooks choose the code of a denial
		return code >= http.StatusBadRequest && code <= http.StatusInternalServerError
	}
}

// isLeft reports whether the upgrade leaves the object unchanged because the API server refuses it.
func (s *Step) isLeft() bool { return s.refusal != nil }

// HasRefusals reports whether any object is left unchanged because the API server refuses it.
func (p *Plan) HasRefusals() bool {
	return slices.ContainsFunc(p.Steps, func(s Step) bool { return s.isLeft() })
}

// Refusals returns a note for each object that is left unchanged because the API server refuses it.
func (p *Plan) Refusals() []string {
	var notes []string
	for i := range p.Steps {
		if s := &p.Steps[i]; s.isLeft() {
			notes = append(notes, fmt.Sprintf("%s is left unchanged: %s", s.Key, excerpt.Line(s.refusal.Error(), maxFailure)))
		}
	}
	return notes
}
