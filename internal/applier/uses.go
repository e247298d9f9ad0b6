package applier

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/impersonation"
)

// definition is a CustomResourceDefinition that an extension owns.
type definition struct {
	name     string
	resource schema.GroupVersionResource // what it defines
	kind     string

	// err says that what it defines is not served as far as we know, so that nobody can
	// tell how much there is of it.
	err error
}

var definitionResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// maxListed is how many objects a page has of a list of metadata, and maxPages how many
// pages of definitions are read at the most.
const (
	maxListed = 500
	maxPages  = 40
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

// ownedDefinitions are the definitions that go with an extension, sorted.
func (a *Applier) ownedDefinitions(ctx context.Context, owner object.Owner) ([]definition, error) {
	client, err := impersonation.Listing(a.clients, metadata.NewForConfigAndClient)
	if err != nil {
		return nil, err
	}
	var owned []definition
	options := metav1.ListOptions{Limit: maxListed}
	for range maxPages {
		list, err := client.Resource(definitionResource).List(ctx, options)
		if err != nil {
			return nil, fmt.Errorf("listing the CustomResourceDefinitions: %w", err)
		}
		for i := range list.Items {
			if owner.IsOwnerOf(&list.Items[i]) {
				owned = append(owned, a.definitionOf(list.Items[i].Name))
			}
		}
		if options.Continue = list.Continue; options.Continue == "" {
			slices.SortFunc(owned, func(a, b definition) int { return cmp.Compare(a.name, b.name) })
			return owned, nil
		}
	}
	return nil, fmt.Errorf("listing the CustomResourceDefinitions: there are more than %d", maxPages*maxListed)
}

// definitionOf knows what is defined by the name, which the API server sees to.
func (a *Applier) definitionOf(name string) definition {
	plural, group, _ := strings.Cut(name, ".")
	kind, err := a.config.Mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: plural})
	if err == nil && kind.Group != group { // a mapper takes a part of a group for the whole
		err = errors.New("it is not served")
	}
	return definition{
		name: name, kind: kind.Kind, err: err,
		resource: schema.GroupVersionResource{Group: group, Version: kind.Version, Resource: plural},
	}
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

func (l listers) list(ctx context.Context, owner object.Owner, one definition) listedUse {
	listed := listedUse{Use: installation.Use{Definition: one.name, Err: one.err}, resource: one.resource}
	if one.err != nil {
		return listed
	}
	list, by, err := l.firstPage(ctx, owner, one.resource)
	if err != nil {
		listed.Err = err
		return listed
	}
	listed.by, listed.version = by, list.ResourceVersion
	listed.Count = int64(len(list.Items))
	switch {
	case list.RemainingItemCount != nil:
		listed.Count += *list.RemainingItemCount
	case list.Continue != "":
		listed.Count++ // at least
	}
	stored := make([]installation.StoredObject, 0, len(list.Items))
	var own []installation.StoredObject
	for i := range list.Items {
		found := storedObjectOf(one, &list.Items[i])
		if owner.IsOwnerOf(&list.Items[i]) {
			own = append(own, found)
		} else {
			stored = append(stored, found)
		}
	}
	listed.Own = int64(len(own))
	stored = append(stored, own...)
	listed.First = slices.Clone(stored[:min(len(stored), installation.MaxFirst)])
	return listed
}

// firstPage fails with [*installation.UncountedError] if nobody may list the kind. A kind
// that turns out not to be served is no empty one: its objects may still be stored.
func (l listers) firstPage(ctx context.Context, owner object.Owner, resource schema.GroupVersionResource) (*metav1.PartialObjectMetadataList, metadata.Interface, error) {
	options := metav1.ListOptions{Limit: maxListed}
	list, err := l.asAccount.Resource(resource).List(ctx, options)
	if err == nil || !isDenied(err) {
		return list, l.asAccount, err
	}
	denied := err
	list, err = l.asOwn.Resource(resource).List(ctx, options)
	if isDenied(err) {
		err = &installation.UncountedError{
			Resource: resource.GroupResource().String(), Account: owner.Account().String(), ByAccount: denied, ByOwn: err,
		}
	}
	return list, l.asOwn, err
}

func isDenied(err error) bool { return apierrors.IsForbidden(err) || apierrors.IsUnauthorized(err) }

func storedObjectOf(one definition, live metav1.Object) installation.StoredObject {
	return installation.StoredObject{
		Key: object.Key{
			GroupKind: schema.GroupKind{Group: one.resource.Group, Kind: one.kind},
			Namespace: live.GetNamespace(), Name: live.GetName(),
		},
		Finalizers: theirFinalizers(live),
		Deleted:    live.GetDeletionTimestamp() != nil,
	}
}
