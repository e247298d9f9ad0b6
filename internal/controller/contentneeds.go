package controller

import (
	"context"
	"errors"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// contentNeeds is what an extension waits for because the files of its bundle require it,
// and catalogs do not say so.
type contentNeeds struct {
	needs requirement.Needs

	// given is what the last check was told of the cluster.
	given *answers
}

// UncheckedError says that it is not known whether the cluster has what the files of a bundle
// require.
type UncheckedError struct{ Err error }

func (e *UncheckedError) Error() string {
	return "the requirements of the bundle cannot be checked: " + e.Err.Error()
}

// Unwrap gives the cause.
func (e *UncheckedError) Unwrap() error { return e.Err }

// runsOn checks what the files of a bundle require: catalogs that were made without
// them do not have it. It fails with [*UnmetError] and [*UncheckedError]. As with requirements
// of catalogs, the image that is installed already stays what it is, whatever has gone since:
// another configuration of it is held against the version of Kubernetes alone.
func (r *Reconciler) runsOn(ctx context.Context, wanted Wanted, outcome *Outcome, content *bundle.Bundle) error {
	list := requirement.OfContent(content)
	if installed := outcome.Installed; installed != nil && !isOther(outcome.Target, *installed) {
		list = requirement.OfKubernetes(content)
	}
	// First of all: what comes while it is looked for, or later, wakes the extension.
	looked := contentNeeds{needs: list.Needs(), given: newAnswers(r.Platform)}
	// Templates are told of all APIs, and of the version of the cluster.
	looked.needs.APIs = looked.needs.APIs || content.Chart != nil
	r.Neighbours.ofContent.Store(wanted.Owner.Name, looked)
	surroundings := r.lookFor(ctx, wanted, looked, outcome.Observed.Surroundings)
	if content.Chart != nil {
		switch {
		case surroundings.APIsErr != nil:
			return &UncheckedError{Err: surroundings.APIsErr}
		case looked.given.kubernetes == "":
			return &UncheckedError{Err: errNoVersion}
		}
	}
	result := requirement.NewChecker(*surroundings.cluster()).Check(list)
	switch {
	case len(result.Unmet) > 0:
		return &UnmetError{Unmet: result.Unmet}
	case result.Err != nil:
		return &UncheckedError{Err: result.Err}
	}
	return nil
}

// lookFor adds what has to be known to check needs that no catalog states. It reads
// from memory only, and nothing for a bundle without such needs.
func (r *Reconciler) lookFor(ctx context.Context, wanted Wanted, looked contentNeeds, s Surroundings) Surroundings {
	if needs := looked.needs; needs.AnyPackage || len(needs.Packages) > 0 {
		c := concern{extension: wanted.Owner.Name, pkg: wanted.Request.Package, needs: needs}
		s.Neighbours, _, s.NeighboursErr = r.Neighbours.concerning(ctx, c)
	}
	if looked.needs.APIs {
		s.Serves, s.APIsErr = looked.given.asking(r.Platform)
	}
	return s
}

// noteNeeds forgets what the files of a bundle require as soon as nothing waits for that: all is
// there, or the extension goes elsewhere.
func (r *Reconciler) noteNeeds(extension string, outcome Outcome) {
	_, isUnmet := errors.AsType[*UnmetError](outcome.Err)
	_, isUnchecked := errors.AsType[*UncheckedError](outcome.Err)
	if !isUnmet && !isUnchecked {
		r.Neighbours.ofContent.Delete(extension)
	}
}

// needsOfContent are what an extension waits for beyond what catalogs state.
func (n *Neighbours) needsOfContent(extension string) contentNeeds {
	known, _ := n.ofContent.Load(extension)
	found, _ := known.(contentNeeds)
	return found
}

// hasCome says that the files of the bundle that an extension waits with would be told something
// else of the cluster now.
func (r *Reconciler) hasCome(extension string) bool {
	given := r.Neighbours.needsOfContent(extension).given
	return given != nil && !given.stillTrue(r.Platform)
}
