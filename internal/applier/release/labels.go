package release

import (
	"strings"

	"helm.sh/helm/v3/pkg/release"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/imageref"
)

// Labels inside a release record: how what is installed is remembered. All but
// the last eight are labels of the reference implementation, too.
const (
	labelBundleName      = "olm.operatorframework.io/bundle-name"
	labelPackageName     = "olm.operatorframework.io/package-name"
	labelBundleVersion   = "olm.operatorframework.io/bundle-version"
	labelBundleRelease   = "olm.operatorframework.io/bundle-release"
	labelBundleReference = "olm.operatorframework.io/bundle-reference"
	labelBundleResolved  = "olm.operatorframework.io/bundle-resolved-reference"
	labelInputs          = "olm.operatorframework.io/inputs"
	labelCondition       = "olm.operatorframework.io/operator-condition"
	labelLookups         = "olm.operatorframework.io/depends-on-cluster"
	labelSelection       = "olm.operatorframework.io/selection"
	labelHooks           = "olm.operatorframework.io/hooks"
	labelLastApplied     = "olm.operatorframework.io/traces"
	labelHelmCRDs        = "olm.operatorframework.io/helm-crds"
	labelRan             = "olm.operatorframework.io/jobs-ran"
)

// maxHistory is how many revisions are kept, the installed one always among
// them.
const maxHistory = 10

// labelsOf gives every label of a record. Helm keeps labels of the last
// revision that the new one does not name, so none is left out.
func labelsOf(revision installation.Revision) map[string]string {
	return map[string]string{
		labelBundleName:      revision.Bundle.Name,
		labelPackageName:     revision.Bundle.Package,
		labelBundleVersion:   revision.Bundle.Version,
		labelBundleReference: revision.Image,
		labelBundleResolved:  resolved(revision.Image, revision.Digest),
		labelInputs:          revision.Inputs,
		labelCondition:       revision.OperatorCondition,
		labelLookups:         lookupsLabel(revision),
		labelSelection:       string(revision.Selection),
		labelHooks:           "", // known when it is recorded
		labelLastApplied:     "", // known when the revision is complete
		labelHelmCRDs:        "", // only for an import
		labelRan:             "", // known when Jobs were created
	}
}

// lookupsLabel is empty for what was rendered from the bundle and its inputs alone.
func lookupsLabel(revision installation.Revision) string {
	if revision.DependsOnCluster {
		return "true"
	}
	return ""
}

// resolved is a reference with the digest that it stood for. The reference is
// part of it because other writers of records carry this label over to
// revisions of other images.
func resolved(image, digest string) string {
	if digest == "" || imageref.Digest(image) != "" {
		return image
	}
	return image + "@" + digest
}

// digestIn gives the digest in what [resolved] made for the same image.
func digestIn(resolved, image string) string {
	name, digest, _ := strings.Cut(resolved, "@")
	if resolved != image && name != image {
		return ""
	}
	return digest
}

// revisionFrom reads back what [labelsOf] wrote, or what the reference
// implementation did: it may keep the release of a bundle beside the version.
func revisionFrom(rel *release.Release) installation.Revision {
	version := rel.Labels[labelBundleVersion]
	if part := rel.Labels[labelBundleRelease]; part != "" && !strings.Contains(version, "+") {
		version += "+" + part
	}
	return installation.Revision{
		Bundle: bundle.Identity{
			Package: rel.Labels[labelPackageName],
			Name:    rel.Labels[labelBundleName],
			Version: version,
		},
		Image:  rel.Labels[labelBundleReference],
		Digest: digestIn(rel.Labels[labelBundleResolved], rel.Labels[labelBundleReference]),
		Inputs: rel.Labels[labelInputs],

		OperatorCondition: rel.Labels[labelCondition],
		DependsOnCluster:  rel.Labels[labelLookups] != "",
		Selection:         bundle.Selection(rel.Labels[labelSelection]),
		IsEmpty:           strings.TrimSpace(rel.Manifest) == "",
	}
}
