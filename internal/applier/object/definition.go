package object

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// DefinedBy is the resource of a definition, in a version that is served, and its
// kind; empty for other objects, and for definitions that make no sense.
func DefinedBy(obj *unstructured.Unstructured) (resource schema.GroupVersionResource, kind string) {
	definition := apiextensionsv1.CustomResourceDefinition{}
	if obj.GroupVersionKind().GroupKind() != DefinitionKind ||
		runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, &definition) != nil {
		return resource, ""
	}
	for _, version := range definition.Spec.Versions {
		if version.Served {
			return schema.GroupVersionResource{
				Group: definition.Spec.Group, Version: version.Name, Resource: definition.Spec.Names.Plural,
			}, definition.Spec.Names.Kind
		}
	}
	return resource, ""
}
