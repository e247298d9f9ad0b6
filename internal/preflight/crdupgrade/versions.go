package crdupgrade

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// compareVersions compares each version with itself.
func compareVersions(found *findings, old, newer *apiextensionsv1.CustomResourceDefinition) {
	stored := storedVersions(old)
	for i := range old.Spec.Versions {
		was := &old.Spec.Versions[i]
		is := versionOf(newer, was.Name)
		// That a stored version is removed is said already.
		gone := is == nil && !slices.Contains(stored, was.Name)
		if was.Served && (gone || is != nil && !is.Served) {
			found.add(Note, checkServedVersionRemoval, fmt.Sprintf("version no longer served : %q", was.Name))
		}
		if is == nil {
			continue
		}
		compareSubresources(found, was, is)
		switch a, b := schemaOf(was), schemaOf(is); {
		case a == nil && b == nil:
		case a == nil:
			found.schema(was.Name, NeedsData, "schema added when there was none previously")
		case b == nil:
			found.schema(was.Name, schemaLoss(old), "schema removed")
		default:
			compareSchemas(was.Name, was, a, b, found.put)
		}
	}
}

func (f *findings) schema(version string, kind Kind, detail string) {
	f.put(Finding{Version: version, Path: root, Check: checkSchema, Detail: detail, Kind: kind})
}

// compareSchemas compares two schemas of objects; was is the version that has the
// old one.
func compareSchemas(name string, was *apiextensionsv1.CustomResourceDefinitionVersion, old, newer *schema, report func(Finding)) {
	w := &walk{version: name, ownStatus: subresources(was).Status != nil, report: report}
	w.node(place{path: root, root: true}, old, newer)
}

// schemaLoss is the kind of the loss of a schema: the API server refuses it
// where all versions have one.
func schemaLoss(old *apiextensionsv1.CustomResourceDefinition) Kind {
	for i := range old.Spec.Versions {
		if schemaOf(&old.Spec.Versions[i]) == nil {
			return Note
		}
	}
	return Blocks
}

func schemaOf(version *apiextensionsv1.CustomResourceDefinitionVersion) *apiextensionsv1.JSONSchemaProps {
	if version.Schema == nil {
		return nil
	}
	return version.Schema.OpenAPIV3Schema
}

// compareSubresources compares what else is served of a version.
func compareSubresources(found *findings, old, newer *apiextensionsv1.CustomResourceDefinitionVersion) {
	note := func(check, detail string) {
		found.put(Finding{Version: old.Name, Check: check, Detail: detail, Kind: Note})
	}
	was, is := subresources(old), subresources(newer)
	switch {
	case was.Status != nil && is.Status == nil:
		note(checkSubresources, "status subresource removed")
	case was.Status == nil && is.Status != nil:
		note(checkSubresources, "status subresource added: the status is no longer written with the object")
	}
	switch {
	case was.Scale != nil && is.Scale == nil:
		note(checkSubresources, "scale subresource removed")
	case was.Scale != nil && scalePaths(was.Scale) != scalePaths(is.Scale):
		note(checkSubresources, fmt.Sprintf("scale subresource changed : %s -> %s", scalePaths(was.Scale), scalePaths(is.Scale)))
	}
	if gone := missing(selectable(old), selectable(newer)); len(gone) > 0 {
		note(checkSelectableFields, fmt.Sprintf("selectable fields removed : %v", gone))
	}
}

func subresources(version *apiextensionsv1.CustomResourceDefinitionVersion) apiextensionsv1.CustomResourceSubresources {
	if version.Subresources == nil {
		return apiextensionsv1.CustomResourceSubresources{}
	}
	return *version.Subresources
}

func scalePaths(scale *apiextensionsv1.CustomResourceSubresourceScale) string {
	selector := ""
	if scale.LabelSelectorPath != nil {
		selector = *scale.LabelSelectorPath
	}
	return fmt.Sprintf("%q", []string{scale.SpecReplicasPath, scale.StatusReplicasPath, selector})
}

func selectable(version *apiextensionsv1.CustomResourceDefinitionVersion) []string {
	paths := make([]string, len(version.SelectableFields))
	for i, field := range version.SelectableFields {
		paths[i] = field.JSONPath
	}
	return paths
}
