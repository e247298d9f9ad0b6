package crdupgrade

import (
	"cmp"
	"fmt"
	"slices"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/version"
)

// maxPairs is how many pairs of versions of a definition are compared. Those of
// ten versions are ninety at most.
const maxPairs = 100

// maxCompared is how large all schemas may be that are compared in pairs of versions,
// each as often as it is. Those of the largest known definition have 2 MiB.
const maxCompared = 16 << 20

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
		before, _ := pairFindings(old, stored)
		for _, finding := range before {
			known[finding] = true
			finding.Kind = Note
			known[finding] = true
		}
	}
	after, left := pairFindings(newer, stored)
	for _, finding := range after {
		if !known[finding] {
			found.put(finding)
		}
	}
	if left != nil {
		found.put(*left)
	}
}

// pairFindings compares as many pairs as there may be. What is left is a finding, which
// is of the worst kind that there could be one of.
func pairFindings(crd *apiextensionsv1.CustomResourceDefinition, stored []string) (found []Finding, left *Finding) {
	leave := func(kind Kind, why string) {
		if left == nil {
			left = &Finding{Check: checkUnhandled, Kind: kind, Detail: "unhandled changes found (" + why + ")"}
		}
		if kind.rank() < left.Kind.rank() {
			left.Kind = kind
		}
	}
	sizes := map[*schema]int{}
	sizeOf := func(s *schema) int {
		if _, known := sizes[s]; !known {
			sizes[s] = s.Size()
		}
		return sizes[s]
	}
	size := 0
	for i, pair := range pairs(crd, stored) {
		a, b := schemaOf(pair.from), schemaOf(pair.to)
		if i >= maxPairs {
			leave(pair.kind, fmt.Sprintf("too many versions: more than %d pairs", maxPairs))
			continue
		}
		if a == nil || b == nil {
			continue
		}
		if size += sizeOf(a) + sizeOf(b); size > maxCompared {
			leave(pair.kind, fmt.Sprintf("too many fields: schemas of more than %d bytes in all pairs of versions", maxCompared))
			continue
		}
		compareSchemas(pair.from.Name+" -> "+pair.to.Name, pair.from, a, b, func(finding Finding) {
			if finding.Kind == NeedsData && len(found) < maxFindings {
				finding.Kind = pair.kind
				found = append(found, finding)
			}
		})
	}
	return found, left
}

type pair struct {
	from, to *apiextensionsv1.CustomResourceDefinitionVersion

	// kind is that of what is found.
	kind Kind
}

// pairs are those of served versions, from the lower to the higher, and those of
// a version that is served or stored and the one to store. Those that matter to stored
// objects come first.
func pairs(crd *apiextensionsv1.CustomResourceDefinition, stored []string) []pair {
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
			kind := Note
			if to.Storage && slices.Contains(stored, from.Name) {
				kind = NeedsData
			}
			all = append(all, pair{from, to, kind})
		}
	}
	slices.SortStableFunc(all, func(a, b pair) int { return cmp.Compare(a.kind.rank(), b.kind.rank()) })
	return all
}
