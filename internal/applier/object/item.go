package object

import (
	"cmp"
	"fmt"
	"slices"
	"sync"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Item is an object of a release together with what the cluster says about its
// kind.
type Item struct {
	Key     Key
	Mapping *meta.RESTMapping
	Object  *unstructured.Unstructured
}

// Items maps every object to its resource, and puts namespaced objects that
// name no namespace into that of the release. The error names every kind that
// the cluster does not serve and no CRD among the objects defines.
func Items(mapper meta.RESTMapper, release Owner, objects []*unstructured.Unstructured) ([]Item, error) {
	items := make([]Item, 0, len(objects))
	unknown := map[schema.GroupVersionKind]struct{}{}
	defined := sync.OnceValue(func() map[schema.GroupVersionKind]*meta.RESTMapping { return definedBy(objects) })
	for _, object := range objects {
		gvk := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(gvk.GroupKind(), gvk.Version)
		if meta.IsNoMatchError(err) {
			if mapping = defined()[gvk]; mapping == nil {
				unknown[gvk] = struct{}{}
				continue
			}
			err = nil
		}
		if err != nil {
			return nil, fmt.Errorf("looking up the resource of %s: %w", gvk, err)
		}
		items = append(items, newItem(mapping, release, object))
	}
	if len(unknown) > 0 {
		return nil, newUnknownKindsError(unknown)
	}
	slices.SortFunc(items, func(a, b Item) int {
		return cmp.Or(cmp.Compare(WaveOf(a.Key.GroupKind), WaveOf(b.Key.GroupKind)), a.Key.Compare(b.Key))
	})
	return items, nil
}

// clusterMetadata are the fields of metadata that the API server decides about.
var clusterMetadata = []string{
	"creationTimestamp", "deletionGracePeriodSeconds", "deletionTimestamp", "generation", "managedFields", "resourceVersion", "selfLink", "uid",
}

func newItem(mapping *meta.RESTMapping, release Owner, obj *unstructured.Unstructured) Item {
	obj = obj.DeepCopy()
	// A manifest has the owner of its time. An earlier extension of the same name
	// would have the garbage collector delete the object.
	release.setOwnerReferences(obj)
	// None of it is the revision's to say, though manifests have it that were read from a cluster.
	for _, field := range clusterMetadata {
		unstructured.RemoveNestedField(obj.Object, "metadata", field)
	}
	unstructured.RemoveNestedField(obj.Object, "status")
	if mapping.Scope.Name() == meta.RESTScopeNameRoot {
		obj.SetNamespace("")
	} else if obj.GetNamespace() == "" {
		obj.SetNamespace(release.Namespace)
	}
	return Item{
		Key: Key{
			GroupKind: mapping.GroupVersionKind.GroupKind(),
			Namespace: obj.GetNamespace(),
			Name:      obj.GetName(),
		},
		Mapping: mapping,
		Object:  obj,
	}
}
