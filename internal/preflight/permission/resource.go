package permission

import (
	"slices"
	"strings"

	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

const (
	groupDefinitions = "apiextensions.k8s.io"
	kindDefinition   = "CustomResourceDefinition"

	groupRegistrations    = "apiregistration.k8s.io"
	resourceRegistrations = "apiservices"
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
// that cluster, and remembers what that has said. It is for one check at a time.
func Served(mapper meta.RESTMapper) Mapper {
	served := map[schema.GroupVersionKind]Resource{}
	return func(object *unstructured.Unstructured) (Resource, error) {
		kind := object.GroupVersionKind()
		if known, ok := served[kind]; ok {
			return known, nil
		}
		mapping, err := mapper.RESTMapping(kind.GroupKind(), kind.Version)
		if err != nil {
			return Resource{}, err
		}
		served[kind] = Resource{
			GroupResource: mapping.Resource.GroupResource(),
			Namespaced:    mapping.Scope.Name() == meta.RESTScopeNameNamespace,
		}
		return served[kind], nil
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
	if inCluster, builtIn := clusterScoped[kind.Group]; builtIn {
		resource.Namespaced = inCluster != nil && !slices.Contains(inCluster, kind.Kind)
	}
	return resource, nil
}

// ServedOrGuessed maps kinds to the resources of a cluster, and guesses those that the
// cluster does not serve yet, or whose mapper cannot tell. It never fails.
func ServedOrGuessed(mapper meta.RESTMapper) Mapper {
	served := Served(mapper)
	return func(object *unstructured.Unstructured) (Resource, error) {
		if resource, err := served(object); err == nil {
			return resource, nil
		}
		return Guessed(object)
	}
}

// clusterScoped are the kinds of each built-in group whose objects live in no
// namespace; nil for all of them.
var clusterScoped = map[string][]string{
	"":                             {"ComponentStatus", "Namespace", "Node", "PersistentVolume"},
	"admissionregistration.k8s.io": nil,
	groupDefinitions:               nil,
	groupRegistrations:             nil,
	"apps":                         {},
	"autoscaling":                  {},
	"batch":                        {},
	"certificates.k8s.io":          {"CertificateSigningRequest", "ClusterTrustBundle"},
	"coordination.k8s.io":          {},
	"discovery.k8s.io":             {},
	"events.k8s.io":                {},
	"flowcontrol.apiserver.k8s.io": nil,
	"networking.k8s.io":            {"IPAddress", "IngressClass", "ServiceCIDR"},
	"node.k8s.io":                  nil,
	"policy":                       {},
	groupRBAC:                      {kindClusterRole, kindClusterRoleBinding},
	"resource.k8s.io":              {"DeviceClass", "DeviceTaintRule", "ResourceSlice"},
	"scheduling.k8s.io":            {"PriorityClass"},
	"storage.k8s.io":               {"CSIDriver", "CSINode", "StorageClass", "VolumeAttachment", "VolumeAttributesClass"},
	"storagemigration.k8s.io":      nil,
}

func plural(kind string) string {
	name := strings.ToLower(kind)
	switch {
	case strings.HasSuffix(name, "way"), strings.HasSuffix(name, "key"): // Gateway
		return name + "s"
	case strings.HasSuffix(name, "constraints"): // SecurityContextConstraints
		return name
	}
	guess, _ := meta.UnsafeGuessKindToResource(schema.GroupVersionKind{Kind: kind})
	return guess.Resource
}

// withDefinitions asks the CustomResourceDefinitions among the objects first:
// their kinds need not be served yet.
func withDefinitions(mapper Mapper, objects []*unstructured.Unstructured) Mapper {
	defined := map[schema.GroupKind]Resource{}
	for _, object := range objects {
		if object.GroupVersionKind().GroupKind() != (schema.GroupKind{Group: groupDefinitions, Kind: kindDefinition}) {
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
