package controller

import (
	"context"
	"slices"
	"strings"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/handler"
	"sigs.k8s.io/controller-runtime/pkg/reconcile"

	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// lacksRights says that something was not done because somebody may not do it:
// other grants could help. Of several errors it is enough that one says so.
func lacksRights(err error) bool {
	//nolint:errorlint // it looks at every error of a tree, errors.As at the first of its type
	switch err := err.(type) {
	case *permission.MissingError:
		return true
	case *preflight.UnsafeError:
		return err.Unread
	case apierrors.APIStatus:
		return err.Status().Reason == metav1.StatusReasonForbidden && !isByPolicy(err.Status().Message)
	case interface{ Unwrap() error }:
		return lacksRights(err.Unwrap())
	case interface{ Unwrap() []error }:
		return slices.ContainsFunc(err.Unwrap(), lacksRights)
	}
	return false
}

// isByPolicy reports whether a quota, a policy, a security level, a webhook or the end of a namespace forbids
// something, which no grant changes.
func isByPolicy(message string) bool {
	return slices.ContainsFunc([]string{exceededQuota, "denied request: ", "denied the request", "violates PodSecurity", isTerminating}, func(words string) bool {
		return strings.Contains(message, words)
	})
}

// noteRights remembers whether an extension waits for rights. With the first one
// that does, who may do what begins to be watched. A change between a first
// failure and this is not missed: the retry that follows finds what it brought.
func (r *Reconciler) noteRights(extension string, outcome Outcome) {
	if !lacksRights(outcome.Err) && !lacksRights(outcome.RepairErr) && !lacksRights(outcome.waitsFor()) {
		r.denied.Delete(extension)
		return
	}
	r.denied.Store(extension, struct{}{})
	r.Platform.FollowGrants()
}

// toThoseDenied wakes the extensions that wait for rights.
func (r *Reconciler) toThoseDenied() handler.TypedEventHandler[struct{}, reconcile.Request] {
	return handler.TypedEnqueueRequestsFromMapFunc(func(context.Context, struct{}) []reconcile.Request {
		requests := r.thoseDenied()
		for _, request := range requests {
			// API servers heed grants with a delay, each with its own.
			r.backoff.startOver(request.Name)
		}
		return requests
	})
}

func (r *Reconciler) thoseDenied() []reconcile.Request {
	var requests []reconcile.Request
	r.denied.Range(func(name, _ any) bool {
		if name, ok := name.(string); ok {
			requests = append(requests, requestFor(name))
		}
		return true
	})
	return requests
}
