package permission

import (
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"k8s.io/client-go/kubernetes/scheme"
)

// Resource is what a kind is called in requests and rules.
type Resource struct {
	schema.GroupResource

	Namespaced bool
}

// Mapper gives the resource of an object. It is not asked for kinds that the
// content itself defines.
type Mapper func(*unstructured.Unstructured) (Resource, error)

// Served maps kinds to the resources of a cluster. It fails like the mapper of
// that cluster.
func Served(mapper meta.RESTMapper) Mapper {
	return func(object *unstructured.Unstructured) (Resource, error) {
		kind := object.GroupVersionKind()
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return Resource{}, err
		}
		return Resource{
			GroupResource: mapping.Resource.GroupResource(),
			Namespaced:    mapping.Scope.Name() == meta.RESTScopeNameNamespace,
		}, nil
	}
}

// Guessed maps kinds without a cluster, and never fails. It is exact for those
// that are built in. For others the plural is the usual one, and an object that
// names a namespace is taken to need one.
func Guessed(object *unstructured.Unstructured) (Resource, error) {
	kind := object.GroupVersionKind().GroupKind()
	resource := Resource{
		GroupResource: schema.GroupResource{Group: kind.Group, Resource: plural(kind.Kind)},
		Namespaced:    object.GetNamespace() != "",
	}
	if scheme.Scheme.IsGroupRegistered(kind.Group) {
		resource.Namespaced = !isClusterScoped(kind)
	}
	return resource, nil
}

// isClusterScoped knows the groups of the scheme, which itself does not say where
// the objects of a kind live.
func isClusterScoped(kind schema.GroupKind) bool {
	switch kind.Group {
	case "":
		return isOneOf(kind.Kind, "ComponentStatus", "Namespace", "Node", "PersistentVolume")
	case "admissionregistration.k8s.io", "flowcontrol.apiserver.k8s.io", "internal.apiserver.k8s.io",
		"node.k8s.io", "scheduling.k8s.io", "storagemigration.k8s.io":
		return true
	case "certificates.k8s.io":
		return isOneOf(kind.Kind, "CertificateSigningRequest", "ClusterTrustBundle")
	case "networking.k8s.io":
		return isOneOf(kind.Kind, "IPAddress", "IngressClass", "ServiceCIDR")
	case groupRBAC:
		return isOneOf(kind.Kind, kindClusterRole, kindClusterRoleBinding)
	case "resource.k8s.io":
		return isOneOf(kind.Kind, "DeviceClass", "DeviceTaintRule", "ResourceSlice")
	case "storage.k8s.io":
		return kind.Kind != "CSIStorageCapacity"
	default:
		return false
	}
}

func isOneOf(kind string, kinds ...string) bool {
	for _, other := range kinds {
		if kind == other {
			return true
		}
	}
	return false
}

func plural(kind string) string {
	name := strings.ToLower(kind)
	if strings.HasSuffix(name, "ay") || strings.HasSuffix(name, "ey") || strings.HasSuffix(name, "oy") {
		return name + "s"
	}
	if strings.HasSuffix(name, "constraints") {
		return name // those of the security context, on OpenShift
	}
	guess, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	return guess.Resource
}

// withDefinitions asks the CustomResourceDefinitions among the objects first:
// their kinds need not be served yet.
func withDefinitions(mapper Mapper, objects []*unstructured.Unstructured) Mapper {
	defined := map[schema.GroupKind]Resource{}
	for _, object := range objects {
		if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: "apiextensions.k8s.io", Kind: "CustomResourceDefinition"}) {
			continue
		}
		field := func(path ...string) string {
			value, _, _ := unstructured.NestedString(object.Object, append([]string{"spec"}, path...)...)
			return value
		}
		kind := schema.GroupKind{Group: field("group"), Kind: field("names", "kind")}
		defined[kind] = Resource{
			GroupResource: schema.GroupResource{Group: kind.Group, Resource: field("names", "plural")},
			Namespaced:    field("scope") == "Namespaced",
		}
	}
	return func(object *unstructured.Unstructured) (Resource, error) {
		if resource, found := defined[object.GroupVersionKind().GroupKind()]; found {
			return resource, nil
		}
		return mapper(object)
	}
}
