package object

import (
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// SwitchesStorage reports whether a CRD, when it replaces the live one, makes the API server store objects in a
// version in which none is stored yet, and convert the stored objects by a webhook. Until that webhook is ready,
// the API server refuses to write any object. It is false if the live CRD cannot be kept until then: the new CRD
// has to contain the version that is stored now.
func SwitchesStorage(wanted, live *unstructured.Unstructured) bool {
	next, now := definitionIn(wanted), definitionIn(live)
	if next == nil || now == nil || next.Spec.Conversion == nil || next.Spec.Conversion.Strategy != apiextensionsv1.WebhookConverter {
		return false
	}
	stored := storageVersion(now)
	return !slices.Contains(now.Status.StoredVersions, storageVersion(next)) && stored != storageVersion(next) &&
		slices.ContainsFunc(next.Spec.Versions, func(v apiextensionsv1.CustomResourceDefinitionVersion) bool { return v.Name == stored })
}

func storageVersion(definition *apiextensionsv1.CustomResourceDefinition) string {
	for _, version := range definition.Spec.Versions {
		if version.Storage {
			return version.Name
		}
	}
	return ""
}

// BeforeSwitch returns a CRD as it is written while its conversion webhook is not ready, see [SwitchesStorage]:
// with the conversion of the live CRD, and with the versions that it serves and stores. A new version is not
// served: without the webhook, the API server would drop the fields that only one of the versions has.
func BeforeSwitch(wanted, live *unstructured.Unstructured) *unstructured.Unstructured {
	made := wanted.DeepCopy()
	spec, _ := made.Object["spec"].(map[string]any)
	delete(spec, "conversion")
	if conversion, isMap := valueIn(live.DeepCopy().Object, "spec", "conversion").(map[string]any); isMap {
		spec["conversion"] = conversion
	}
	now := definitionIn(live)
	versions, _ := spec["versions"].([]any)
	for _, version := range versions {
		fields, isMap := version.(map[string]any)
		if !isMap {
			continue
		}
		fields["served"], fields["storage"] = false, false
		for _, is := range now.Spec.Versions {
			if is.Name == fields["name"] {
				fields["served"], fields["storage"] = is.Served, is.Storage
			}
		}
	}
	return made
}
