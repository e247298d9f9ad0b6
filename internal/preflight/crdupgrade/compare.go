package crdupgrade

import (
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// Compare returns what the upgrade of a definition from old to newer changes,
// sorted, bounded. Both are as the API server has them: they may
// lack schemas. Without old or newer there is nothing to compare: see [Dropped]
// for what is deleted.
func Compare(old, newer *apiextensionsv1.CustomResourceDefinition) []Finding {
	if old == nil || newer == nil {
		return nil
	}
	found := &findings{crd: old.Name}
	compareDefinitions(found, old, newer)
	compareVersions(found, old, newer)
	comparePairs(found, old, newer)
	return found.sorted()
}

// Dropped returns the finding for a definition that the new bundle does not have.
func Dropped(old *apiextensionsv1.CustomResourceDefinition) Finding {
	found := &findings{crd: old.Name}
	found.add(NeedsData, checkCRDRemoval, "definition removed : "+old.Spec.Group+"/"+old.Spec.Names.Kind)
	return found.all[0]
}
