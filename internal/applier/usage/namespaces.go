package usage

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/client-go/discovery"
	"k8s.io/client-go/metadata"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// namespaceResource is the resource of Namespaces.
var namespaceResource = corev1.SchemeGroupVersion.WithResource("namespaces")

// maxNamespacedKinds bounds the kinds that are listed in a Namespace.
const maxNamespacedKinds = 2000

// namespacedKind is a kind of objects in namespaces that the API server stores.
type namespacedKind struct {
	Resource schema.GroupVersionResource
	Kind     string
}

// withoutData returns the kinds whose objects the cluster creates itself, or that have no use without other objects.
func withoutData() sets.Set[schema.GroupResource] {
	return sets.New(
		schema.GroupResource{Resource: "events"}, schema.GroupResource{Group: "events.k8s.io", Resource: "events"},
		schema.GroupResource{Resource: "endpoints"}, schema.GroupResource{Group: "discovery.k8s.io", Resource: "endpointslices"},
		schema.GroupResource{Group: "coordination.k8s.io", Resource: "leases"},
		schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "roles"},
		schema.GroupResource{Group: "rbac.authorization.k8s.io", Resource: "rolebindings"},
	)
}

// namespacedKinds returns the kinds that othersIn lists, sorted. It fails if discovery is
// incomplete, or if there are more than [maxNamespacedKinds].
func namespacedKinds(cluster discovery.DiscoveryInterface) ([]namespacedKind, error) {
	lists, err := discovery.ServerPreferredNamespacedResources(cluster)
	if err != nil {
		return nil, fmt.Errorf("reading which kinds the cluster serves: %w", err)
	}
	ignored := withoutData()
	var kinds []namespacedKind
	for _, list := range lists {
		version, err := schema.ParseGroupVersion(list.GroupVersion)
		if err != nil {
			return nil, fmt.Errorf("reading which kinds the cluster serves: %w", err)
		}
		for i := range list.APIResources {
			one := &list.APIResources[i]
			resource := version.WithResource(one.Name)
			// The API server computes objects of other kinds from stored objects, for each request.
			isStored := slices.Contains(one.Verbs, "list") && slices.Contains(one.Verbs, "delete")
			if isStored && !ignored.Has(resource.GroupResource()) {
				kinds = append(kinds, namespacedKind{Resource: resource, Kind: one.Kind})
			}
		}
	}
	if len(kinds) > maxNamespacedKinds {
		return nil, fmt.Errorf("the cluster serves %d kinds in namespaces, and at most %d are listed", len(kinds), maxNamespacedKinds)
	}
	slices.SortFunc(kinds, func(a, b namespacedKind) int { return cmp.Compare(a.Resource.String(), b.Resource.String()) })
	return kinds, nil
}

// NamespacesInUse returns the Namespaces among names that are deleted with an extension, with the
// objects in them that it does not own. It lists no kinds if there is no such Namespace.
func NamespacesInUse(ctx context.Context, client metadata.Interface, cluster discovery.DiscoveryInterface, owner object.Owner, names []string) ([]installation.NamespaceUse, error) {
	var uses []installation.NamespaceUse
	var kinds []namespacedKind
	for _, name := range names {
		isOwned, err := ownsNamespace(ctx, client, owner, name)
		if err != nil {
			uses = append(uses, installation.NamespaceUse{Namespace: name, Err: err})
			continue
		}
		if !isOwned {
			continue
		}
		if kinds == nil {
			if kinds, err = namespacedKinds(cluster); err != nil {
				return nil, err
			}
		}
		uses = append(uses, othersIn(ctx, client, kinds, owner, name))
	}
	return uses, nil
}

// ownsNamespace reports whether a Namespace would be deleted with an extension. It is false for a
// Namespace that is being deleted already.
func ownsNamespace(ctx context.Context, client metadata.Interface, owner object.Owner, name string) (bool, error) {
	live, err := client.Resource(namespaceResource).Get(ctx, name, metav1.GetOptions{})
	if apierrors.IsNotFound(err) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("reading Namespace %q: %w", name, err)
	}
	return owner.IsOwnerOf(live) && live.DeletionTimestamp == nil, nil
}

// othersIn counts the objects of a Namespace that an extension does not own and that would be
// deleted with it. Objects that a controller creates again from others do not count.
func othersIn(ctx context.Context, client metadata.Interface, kinds []namespacedKind, owner object.Owner, namespace string) installation.NamespaceUse {
	use := installation.NamespaceUse{Namespace: namespace}
	for _, kind := range kinds {
		err := eachOf(ctx, client.Resource(kind.Resource).Namespace(namespace), kind.Resource.GroupResource(), func(found *metav1.PartialObjectMetadata) {
			key := object.Key{GroupKind: schema.GroupKind{Group: kind.Resource.Group, Kind: kind.Kind}, Namespace: namespace, Name: found.Name}
			if owner.IsOwnerOf(found) || isDerived(found) || isOfNamespace(key, owner) {
				return
			}
			if use.Count++; len(use.First) < installation.MaxFirst {
				use.First = append(use.First, key)
			}
		})
		if err != nil && !apierrors.IsNotFound(err) && !apierrors.IsMethodNotSupported(err) {
			use.Err = err
			return use
		}
	}
	return use
}

// isDerived reports whether a controller creates the object again from another object.
func isDerived(found *metav1.PartialObjectMetadata) bool {
	if _, isToken := found.Annotations[corev1.ServiceAccountNameKey]; isToken {
		return true
	}
	controller := metav1.GetControllerOfNoCopy(found)
	return controller != nil && controller.Kind != object.OwnerKind
}

// isOfNamespace reports whether every Namespace has the object, or the extension needs it.
func isOfNamespace(key object.Key, owner object.Owner) bool {
	switch key.GroupKind {
	case schema.GroupKind{Kind: "ServiceAccount"}:
		return slices.Contains([]string{"default", "builder", "deployer"}, key.Name) || owner.IsHome(key)
	case schema.GroupKind{Kind: "ConfigMap"}:
		return key.Name == "kube-root-ca.crt" || key.Name == "openshift-service-ca.crt"
	}
	return false
}
