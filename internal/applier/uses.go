package applier

import (
	"context"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// Uses says which definitions an extension owns, and what there is of their kinds. It asks
// the cluster and not the records: what the garbage collector deletes is what counts. It
// reads as the ServiceAccount, and where that may not list custom resources as the
// controller, if that may.
//
// As long as there are custom resources, and nobody is known to have deleted the last one,
// it gives what it has given before, and makes no request.
func (a *Applier) Uses(ctx context.Context, owner object.Owner) (installation.Uses, error) {
	known := a.memory(owner)
	if remembered, ok := known.uses.remembered(a.config.Now()); ok {
		return remembered, nil
	}
	definitions, err := a.ownedDefinitions(ctx, owner)
	if err != nil {
		return installation.Uses{}, err
	}
	listers, err := a.listersFor(owner)
	if err != nil {
		return installation.Uses{}, err
	}
	uses := installation.Uses{Definitions: make([]installation.Use, len(definitions))}
	listed := make([]listedUse, len(definitions))
	for i, one := range definitions {
		listed[i] = listers.list(ctx, owner, one)
		uses.Definitions[i] = listed[i].Use
	}
	uses.RecheckAfter = known.uses.follow(ctx, a.config.Now(), listed, uses, func() { a.config.Changed(owner.Name) })
	return uses, nil
}

// ownedDefinitions are the definitions that an extension owns, sorted.
func (a *Applier) ownedDefinitions(ctx context.Context, owner object.Owner) ([]usage.Definition, error) {
	client, err := impersonation.Listing(a.clients, metadata.NewForConfigAndClient)
	if err != nil {
		return nil, err
	}
	return usage.Owned(ctx, client, a.config.Mapper, owner)
}

// listers list custom resources: first the one that acts as the ServiceAccount, then the
// controller itself.
type listers struct{ asAccount, asOwn metadata.Interface }

func (a *Applier) listersFor(owner object.Owner) (listers, error) {
	asAccount, err := impersonation.As(a.clients, owner.Account(), metadata.NewForConfigAndClient)
	if err != nil {
		return listers{}, err
	}
	asOwn, err := impersonation.Listing(a.clients, metadata.NewForConfigAndClient)
	return listers{asAccount: asAccount, asOwn: asOwn}, err
}

// listedUse is a use with the client that could list it, and the resource version of that.
type listedUse struct {
	installation.Use

	resource schema.GroupVersionResource
	by       metadata.Interface
	version  string
}

func (l listers) list(ctx context.Context, owner object.Owner, one usage.Definition) listedUse {
	failed := func(err error) listedUse {
		return listedUse{Use: installation.Use{Definition: one.Name, Shared: one.Shared, Err: err}, resource: one.Resource}
	}
	if one.Err != nil {
		return failed(one.Err)
	}
	list, by, err := l.firstPage(ctx, owner, one)
	if err != nil {
		return failed(err)
	}
	return listedUse{Use: one.Use(owner, list), resource: one.Resource, by: by, version: list.ResourceVersion}
}

// firstPage fails with [*installation.UncountedError] if nobody may list the kind. A kind
// that turns out not to be served is no empty one: its objects may still be stored.
func (l listers) firstPage(ctx context.Context, owner object.Owner, one usage.Definition) (*metav1.PartialObjectMetadataList, metadata.Interface, error) {
	list, err := one.FirstPage(ctx, l.asAccount)
	if err == nil || !isDenied(err) {
		return list, l.asAccount, err
	}
	denied := err
	list, err = one.FirstPage(ctx, l.asOwn)
	if isDenied(err) {
		err = &installation.UncountedError{
			Resource: one.Resource.GroupResource().String(), Account: owner.Account().String(), ByAccount: denied, ByOwn: err,
		}
	}
	return list, l.asOwn, err
}

func isDenied(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }
