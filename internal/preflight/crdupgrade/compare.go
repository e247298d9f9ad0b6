package crdupgrade

import (
	"fmt"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// maxVersions is how many versions a definition may have to be compared. Real
// ones have less than ten.
const maxVersions = 100

// Compare returns what the upgrade of a definition from old to newer changes,
// sorted, bounded. Both are as the API server has them: they may
// lack schemas. Without old or newer there is nothing to compare: see [Dropped]
// for what is deleted.
func Compare(old, newer *apiextensionsv1.CustomResourceDefinition) []Finding {
	if old == nil || newer == nil {
		return nil
	}
	found := &findings{crd: old.Name}
	if n := max(len(old.Spec.Versions), len(newer.Spec.Versions)); n > maxVersions {
		found.add(NeedsData, checkUnhandled, fmt.Sprintf("unhandled changes found (%d versions, of which at most %d are compared)", n, maxVersions))
		return found.sorted()
	}
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
