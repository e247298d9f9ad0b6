package usage

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/metadata"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// DefinitionResource is that of CustomResourceDefinitions.
var DefinitionResource = apiextensionsv1.SchemeGroupVersion.WithResource("customresourcedefinitions")

// MaxListed is how many objects a page has of a list of metadata, and MaxPages how many
// pages of definitions are read at the most.
const (
	MaxListed = 500
	MaxPages  = 40
)

// Definition is a CustomResourceDefinition.
type Definition struct {
	Name     string
	Resource schema.GroupVersionResource // what it defines
	Kind     string

	// Shared says that it has other owners too.
	Shared bool

	// Err says that what it defines is not served as far as we know, so that nobody can
	// tell how much there is of it.
	Err error
}

// DefinitionOf knows what is defined by the name, which the API server sees to.
func DefinitionOf(mapper meta.RESTMapper, name string) Definition {
	plural, group, _ := strings.Cut(name, ".")
	kind, err := mapper.KindFor(schema.GroupVersionResource{Group: group, Resource: plural})
	if err == nil && kind.Group != group { // a mapper takes a part of a group for the whole
		err = errors.New("it is not served")
	}
	return Definition{
		Name: name, Kind: kind.Kind, Err: err,
		Resource: schema.GroupVersionResource{Group: group, Version: kind.Version, Resource: plural},
	}
}

// Owned are the definitions that an extension owns, sorted by their names.
func Owned(ctx context.Context, client metadata.Interface, mapper meta.RESTMapper, owner object.Owner) ([]Definition, error) {
	var owned []Definition
	err := EachOf(ctx, client, DefinitionResource, func(found *metav1.PartialObjectMetadata) {
		if owner.IsOwnerOf(found) {
			one := DefinitionOf(mapper, found.Name)
			one.Shared = owner.SharesWithOthers(found)
			owned = append(owned, one)
		}
	})
	slices.SortFunc(owned, func(a, b Definition) int { return cmp.Compare(a.Name, b.Name) })
	return owned, err
}

// EachOf lists the metadata of all objects of a kind in pages, of which it keeps none. It fails
// if there are more than [MaxPages] of them.
func EachOf(ctx context.Context, client metadata.Interface, resource schema.GroupVersionResource, visit func(*metav1.PartialObjectMetadata)) error {
	return eachOf(ctx, client.Resource(resource), resource.GroupResource(), visit)
}

func eachOf(ctx context.Context, lister metadata.ResourceInterface, resource schema.GroupResource, visit func(*metav1.PartialObjectMetadata)) error {
	options := metav1.ListOptions{Limit: MaxListed}
	for range MaxPages {
		list, err := lister.List(ctx, options)
		if err != nil {
			return fmt.Errorf("listing the %s: %w", resource.Resource, err)
		}
		for i := range list.Items {
			visit(&list.Items[i])
		}
		if options.Continue = list.Continue; options.Continue == "" {
			return nil
		}
	}
	return fmt.Errorf("listing the %s: there are more than %d", resource.Resource, MaxPages*MaxListed)
}

// FirstPage lists custom resources of a definition: as many as a page has.
func (d Definition) FirstPage(ctx context.Context, client metadata.Interface) (*metav1.PartialObjectMetadataList, error) {
	return client.Resource(d.Resource).List(ctx, metav1.ListOptions{Limit: MaxListed})
}

// Use counts what there is by the first page. If the API server does not say how many
// more there are, it is one.
func (d Definition) Use(owner object.Owner, page *metav1.PartialObjectMetadataList) installation.Use {
	use := installation.Use{Definition: d.Name, Count: int64(len(page.Items)), Shared: d.Shared}
	switch {
	case page.RemainingItemCount != nil:
		use.Count += *page.RemainingItemCount
	case page.Continue != "":
		use.Count++ // at least
	}
	stored := make([]installation.StoredObject, 0, len(page.Items))
	var own []installation.StoredObject
	for i := range page.Items {
		found := d.storedObjectOf(&page.Items[i])
		if len(found.Finalizers) > 0 {
			use.HeldCount++
			if len(use.Held) < installation.MaxHeld {
				use.Held = append(use.Held, found)
			}
		}
		if owner.IsOwnerOf(&page.Items[i]) {
			own = append(own, found)
		} else {
			stored = append(stored, found)
		}
	}
	use.Own = int64(len(own))
	stored = append(stored, own...)
	use.First = slices.Clone(stored[:min(len(stored), installation.MaxFirst)])
	return use
}

func (d Definition) storedObjectOf(live metav1.Object) installation.StoredObject {
	return installation.StoredObject{
		Key: object.Key{
			GroupKind: schema.GroupKind{Group: d.Resource.Group, Kind: d.Kind},
			Namespace: live.GetNamespace(), Name: live.GetName(),
		},
		Finalizers: TheirFinalizers(live),
		Deleted:    live.GetDeletionTimestamp() != nil,
		Created:    live.GetCreationTimestamp().Time,
	}
}

// TheirFinalizers leaves out those by which the cluster waits for what an object
// owns, which go by themselves.
func TheirFinalizers(object metav1.Object) []string {
	return slices.DeleteFunc(slices.Clone(object.GetFinalizers()), func(name string) bool {
		return name == metav1.FinalizerDeleteDependents || name == metav1.FinalizerOrphanDependents
	})
}

// IsConverted says that a webhook converts the objects of a definition.
func IsConverted(definition *apiextensionsv1.CustomResourceDefinition) bool {
	return definition.Spec.Conversion != nil && definition.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter
}

// CheckConversion fails with [*installation.ConversionError] if the objects of a definition
// cannot be read without the webhook that converts them: unless all of them are stored in the
// one version that is served.
func CheckConversion(definition *apiextensionsv1.CustomResourceDefinition) error {
	if !IsConverted(definition) {
		return nil
	}
	var served []string
	for _, version := range definition.Spec.Versions {
		if version.Served {
			served = append(served, version.Name)
		}
	}
	if stored := definition.Status.StoredVersions; len(served) != 1 || !slices.Equal(stored, served) {
		return &installation.ConversionError{Definition: definition.Name, Stored: stored, Served: served}
	}
	return nil
}
