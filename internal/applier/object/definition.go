package object

import (
	"fmt"

	"k8s.io/apiextensions-apiserver/pkg/apihelpers"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// DefinedBy returns the resource that a CRD defines, in a served version, and its kind. Both are empty for other
// objects, and for CRDs that cannot be read.
func DefinedBy(obj *unstructured.Unstructured) (resource schema.GroupVersionResource, kind string) {
	definition := definitionIn(obj)
	if definition == nil {
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

// definedBy returns the resources that the CRDs among the objects define, in all served versions.
func definedBy(objects []*unstructured.Unstructured) map[schema.GroupVersionKind]*meta.RESTMapping {
	defined := map[schema.GroupVersionKind]*meta.RESTMapping{}
	for _, obj := range objects {
		definition := definitionIn(obj)
		if definition == nil {
			continue
		}
		scope := meta.RESTScopeNamespace
		if definition.Spec.Scope == apiextensionsv1.ClusterScoped {
			scope = meta.RESTScopeRoot
		}
		for _, version := range definition.Spec.Versions {
			if version.Served {
				group := schema.GroupVersion{Group: definition.Spec.Group, Version: version.Name}
				kind := group.WithKind(definition.Spec.Names.Kind)
				defined[kind] = &meta.RESTMapping{Resource: group.WithResource(definition.Spec.Names.Plural), GroupVersionKind: kind, Scope: scope}
			}
		}
	}
	return defined
}

// IsEstablished reports whether the API server serves the kind of a CRD. If the API server refuses a name in the CRD,
// problem is the message of the condition NamesAccepted; the kind may be served under an earlier name all the same.
func IsEstablished(live *unstructured.Unstructured) (established bool, problem string) {
	definition := definitionIn(live)
	if definition == nil {
		return false, ""
	}
	if refused := apihelpers.FindCRDCondition(definition, apiextensionsv1.NamesAccepted); refused != nil && refused.Status == apiextensionsv1.ConditionFalse {
		problem = refused.Message
	}
	return apihelpers.IsCRDConditionTrue(definition, apiextensionsv1.Established), problem
}

// definitionIn returns the CRD in an object; nil for other objects, and for CRDs that cannot be read.
func definitionIn(obj *unstructured.Unstructured) *apiextensionsv1.CustomResourceDefinition {
	definition := &apiextensionsv1.CustomResourceDefinition{}
	if obj.GroupVersionKind().GroupKind() != DefinitionKind || runtime.DefaultUnstructuredConverter.FromUnstructured(obj.Object, definition) != nil {
		return nil
	}
	return definition
}

// deletionOf returns what the deletion of a CRD waits for; it is empty for other objects. The API server deletes all
// custom resources first, and needs the conversion webhook to list them.
func deletionOf(live *unstructured.Unstructured) string {
	definition := definitionIn(live)
	if definition == nil {
		return ""
	}
	text := "it is being deleted"
	if terminating := apihelpers.FindCRDCondition(definition, apiextensionsv1.Terminating); terminating != nil && terminating.Message != "" {
		text += ": " + excerpt.Line(excerpt.Scrub(terminating.Message), maxListed)
	}
	name := argument(definition.Name, "CRD")
	text += fmt.Sprintf("; its custom resources go first: see which of them have finalizers that no operator removes: "+
		"`kubectl get %s -A -o custom-columns=NAMESPACE:.metadata.namespace,NAME:.metadata.name,FINALIZERS:.metadata.finalizers`", name)
	if IsConverted(live) {
		text += "; if the conversion webhook no longer answers, switch it off: " + EndConversion(definition.Name)
	}
	return text
}

// EndConversion returns the command that switches off the conversion webhook of a CRD.
func EndConversion(name string) string {
	return fmt.Sprintf("`kubectl patch customresourcedefinition %s --type=merge -p '{\"spec\":{\"conversion\":{\"strategy\":\"None\",\"webhook\":null}}}'`",
		argument(name, "CRD"))
}

// IsConverted reports whether an object is a CRD whose custom resources are converted by a webhook.
func IsConverted(live *unstructured.Unstructured) bool {
	return live.GetKind() == DefinitionKind.Kind && TextIn(live, "spec", "conversion", "strategy") == string(apiextensionsv1.WebhookConverter)
}

// FailedDeletion returns why the API server cannot delete the custom resources of a CRD that is being deleted. It is
// empty while the API server is still deleting them.
func FailedDeletion(live *unstructured.Unstructured) string {
	definition := definitionIn(live)
	if definition == nil || definition.DeletionTimestamp == nil {
		return ""
	}
	terminating := apihelpers.FindCRDCondition(definition, apiextensionsv1.Terminating)
	if terminating == nil || terminating.Reason != "InstanceDeletionFailed" {
		return ""
	}
	return excerpt.Line(excerpt.Scrub(terminating.Message), maxListed)
}
