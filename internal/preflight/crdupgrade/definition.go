package crdupgrade

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/util/sets"
)

// compareDefinitions compares what definitions say outside of versions.
func compareDefinitions(found *findings, old, newer *apiextensionsv1.CustomResourceDefinition) {
	if old.Spec.Scope != newer.Spec.Scope {
		found.add(Blocks, checkScope, fmt.Sprintf("scope changed : %q -> %q", old.Spec.Scope, newer.Spec.Scope))
	}
	compareNames(found, old.Spec.Names, newer.Spec.Names)
	for _, name := range storedVersions(old) {
		if versionOf(newer, name) == nil {
			found.add(Blocks, checkStoredVersionRemoval, fmt.Sprintf("stored versions removed : [%s]", name))
		}
	}
	if old.Spec.PreserveUnknownFields && !newer.Spec.PreserveUnknownFields {
		found.add(NeedsData, checkPreserveUnknown, "preserveUnknownFields changed : true -> false")
	}
	was, is := storageVersion(old), storageVersion(newer)
	if was != is && is != "" && versionOf(newer, was) != nil {
		found.add(Note, checkStorageVersion, fmt.Sprintf("storage version changed : %q -> %q", was, is))
	}
	compareConversion(found, old.Spec.Conversion, newer.Spec.Conversion)
}

func compareNames(found *findings, old, newer apiextensionsv1.CustomResourceDefinitionNames) {
	changed := func(kind Kind, name, from, to string) {
		if from != to {
			found.add(kind, checkNames, fmt.Sprintf("%s changed : %q -> %q", name, from, to))
		}
	}
	changed(Blocks, "kind", old.Kind, newer.Kind)
	// The API server sets these where they are left out.
	if newer.ListKind != "" {
		changed(Note, "listKind", old.ListKind, newer.ListKind)
	}
	if newer.Singular != "" {
		changed(Note, "singular", old.Singular, newer.Singular)
	}
	removed := func(name string, from, to []string) {
		if gone := missing(from, to); len(gone) > 0 {
			found.add(Note, checkNames, fmt.Sprintf("%s removed : %q", name, gone))
		}
	}
	removed("shortNames", old.ShortNames, newer.ShortNames)
	removed("categories", old.Categories, newer.Categories)
}

func compareConversion(found *findings, old, newer *apiextensionsv1.CustomResourceConversion) {
	switch was, is := converter(old), converter(newer); {
	case was == is:
	case was == "":
		found.add(Note, checkConversion, "conversion added : "+is)
	case is == "":
		found.add(Note, checkConversion, "conversion removed : "+was)
	default:
		found.add(Note, checkConversion, fmt.Sprintf("conversion changed : %s -> %s", was, is))
	}
}

// converter names who converts objects; empty: nobody. Authorities and ports are
// a matter of those who install it.
func converter(conversion *apiextensionsv1.CustomResourceConversion) string {
	if !byWebhook(conversion) {
		return ""
	}
	text := "webhook"
	if conversion.Webhook == nil || conversion.Webhook.ClientConfig == nil {
		return text
	}
	config := conversion.Webhook.ClientConfig
	switch {
	case config.URL != nil:
		text += fmt.Sprintf(" %q", *config.URL)
	case config.Service != nil:
		text += fmt.Sprintf(" of service %q", config.Service.Namespace+"/"+config.Service.Name)
		if config.Service.Path != nil {
			text += fmt.Sprintf(" at %q", *config.Service.Path)
		}
	}
	return text
}

func byWebhook(conversion *apiextensionsv1.CustomResourceConversion) bool {
	return conversion != nil && conversion.Strategy == apiextensionsv1.WebhookConverter
}

// storedVersions are those in which objects may be stored, sorted. A definition
// that no API server has seen stores in its storage version.
func storedVersions(crd *apiextensionsv1.CustomResourceDefinition) []string {
	names := slices.Clone(crd.Status.StoredVersions)
	if storage := storageVersion(crd); storage != "" && len(names) == 0 {
		names = append(names, storage)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

func storageVersion(crd *apiextensionsv1.CustomResourceDefinition) string {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Storage {
			return crd.Spec.Versions[i].Name
		}
	}
	return ""
}

func versionOf(crd *apiextensionsv1.CustomResourceDefinition, name string) *apiextensionsv1.CustomResourceDefinitionVersion {
	for i := range crd.Spec.Versions {
		if crd.Spec.Versions[i].Name == name {
			return &crd.Spec.Versions[i]
		}
	}
	return nil
}

// missing are those of from that are not in to, sorted, each once.
func missing(from, to []string) []string {
	return sets.List(sets.New(from...).Difference(sets.New(to...)))
}
