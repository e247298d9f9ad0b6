package applier

import (
	"context"
	"errors"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
	"github.com/clusterextensions/operator-controller/internal/objectlist"
)

// SharedPods returns the Services among objects that select pods of other Deployments in the
// namespace of the extension. If objects is nil, it uses the objects of the installed revision. It lists
// Deployments as the ServiceAccount, and makes no request if no such Service is called by the
// API server. If the ServiceAccount may not list Deployments, it compares objects alone. It leaves out Deployments that
// are too large to be read: a user who creates them must not prevent upgrades.
func (a *Applier) SharedPods(ctx context.Context, owner object.Owner, objects []*unstructured.Unstructured) ([]bundle.SharedService, error) {
	if objects == nil {
		installed, err := a.installed(ctx, owner)
		if err != nil {
			return nil, err
		}
		objects = installed.Objects
	}
	if !bundle.HasCalledService(objects) {
		return nil, nil
	}
	client, err := impersonation.As(a.clients, owner.Account(), usage.AppsClient)
	if err != nil {
		return nil, err
	}
	live, err := usage.Deployments(ctx, client, owner.Namespace)
	isTooLarge := errors.Is(err, objectlist.ErrLargeObject) || errors.Is(err, objectlist.ErrManyBytes)
	if err != nil && !isDenied(err) && !isTooLarge {
		return nil, err
	}
	return bundle.Shared(objects, live, owner.Labels()), nil
}
