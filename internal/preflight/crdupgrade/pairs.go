package crdupgrade

import (
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/version"
)

// maxPairs is how many pairs of versions of a definition are compared. Those of
// ten versions are ninety at most.
const maxPairs = 100

// comparePairs compares the versions of the new definition with each other, unless
// somebody converts objects between them: without, an object of one version is
// taken for one of the other as it is. What is so in the old definition as well
// is not said.
//
// It matters to stored objects if the version that they are stored in differs
// from the one that they will be stored in.
func comparePairs(found *findings, old, newer *apiextensionsv1.CustomResourceDefinition) {
	if byWebhook(newer.Spec.Conversion) {
		return
	}
	stored := storedVersions(old)
	known := map[Finding]bool{}
	if !byWebhook(old.Spec.Conversion) {
		for _, finding := range pairFindings(old, stored) {
			known[finding] = true
			finding.Kind = Note
			known[finding] = true
		}
	}
	for _, finding := range pairFindings(newer, stored) {
		if !known[finding] {
			found.put(finding)
		}
	}
}

func pairFindings(crd *apiextensionsv1.CustomResourceDefinition, stored []string) []Finding {
	all, cutOff := pairs(crd, stored)
	var found []Finding
	if cutOff {
		found = append(found, Finding{
			Check: checkUnhandled, Kind: Note,
			Detail: fmt.Sprintf("unhandled changes found (too many versions: more than %d pairs)", maxPairs),
		})
	}
	for _, pair := range all {
		kind := Note
		if pair.to.Storage && slices.Contains(stored, pair.from.Name) {
			kind = NeedsData
		}
		a, b := schemaOf(pair.from), schemaOf(pair.to)
		if a == nil || b == nil {
			continue
		}
		compareSchemas(pair.from.Name+" -> "+pair.to.Name, pair.from, a, b, func(finding Finding) {
			if finding.Kind == NeedsData && len(found) < maxFindings {
				finding.Kind = kind
				found = append(found, finding)
			}
		})
	}
	return found
}

type pair struct {
	from, to *apiextensionsv1.CustomResourceDefinitionVersion
}

// pairs are those of served versions, from the lower to the higher, and those of
// a version that is served or stored and the one to store; and whether there are
// more.
func pairs(crd *apiextensionsv1.CustomResourceDefinition, stored []string) ([]pair, bool) {
	var versions []*apiextensionsv1.CustomResourceDefinitionVersion
	for i := range crd.Spec.Versions {
		v := &crd.Spec.Versions[i]
		if v.Served || v.Storage || slices.Contains(stored, v.Name) {
			versions = append(versions, v)
		}
	}
	slices.SortStableFunc(versions, func(a, b *apiextensionsv1.CustomResourceDefinitionVersion) int {
		return version.CompareKubeAwareVersionStrings(a.Name, b.Name)
	})
	var all []pair
	for i, from := range versions {
		for j, to := range versions {
			upward := i < j && from.Served && to.Served
			if i == j || !upward && !to.Storage {
				continue
			}
			if len(all) == maxPairs {
				return all, true
			}
			all = append(all, pair{from, to})
		}
	}
	return all, false
}
