package bundle

import (
	"fmt"
	"slices"
	"strings"

	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	"k8s.io/apimachinery/pkg/util/sets"
	"k8s.io/apimachinery/pkg/util/validation"
)

// Paths inside a ClusterServiceVersion.
const (
	pathDeployments = "spec.install.spec.deployments"
	pathOwnedCRDs   = "spec.customresourcedefinitions.owned"
	pathWebhooks    = "spec.webhookdefinitions"
	pathAPIServices = "spec.apiservicedefinitions.owned"
)

// Validate judges a parsed bundle by every rule that needs neither a cluster
// nor configuration. It fails with an [*InvalidError] that lists all
// violations, or else an [*UnsupportedError].
func (b *Bundle) Validate() error {
	v := validator{bundle: b}
	b.format().validate(&v)
	return v.err()
}

type validator struct {
	findings

	bundle *Bundle
}

// csv records a violation inside the ClusterServiceVersion.
func (v *validator) csv(path, format string, args ...any) {
	v.add(v.bundle.csvFile(), path, format, args...)
}

func (v *validator) packageName() {
	if v.bundle.Package == "" {
		v.add(annotationsFile, "", "package name is empty")
	}
}

func (v *validator) deploymentCount() {
	if n := len(v.bundle.deployments()); n > MaxDeployments {
		v.csv(pathDeployments, "%d deployments, more than %d", n, MaxDeployments)
	}
}

func (v *validator) deploymentNames() {
	seen := sets.New[string]()
	for i, deployment := range v.bundle.deployments() {
		path := fmt.Sprintf("%s[%d].name", pathDeployments, i)
		if reasons := validation.IsDNS1123Subdomain(deployment.Name); len(reasons) > 0 {
			v.csv(path, "invalid deployment name %q: %s", deployment.Name, strings.Join(reasons, ", "))
		}
		if seen.Has(deployment.Name) {
			v.csv(path, "duplicate deployment %q", deployment.Name)
		}
		seen.Insert(deployment.Name)
	}
}

func (v *validator) ownedCRDs() {
	bundled := sets.New[string]()
	for _, crd := range v.bundle.CRDs {
		bundled.Insert(crd.Name)
	}
	// One CRD is listed once for every version of it that is owned.
	reported := sets.New[string]()
	for i, owned := range v.bundle.CSV.Spec.CustomResourceDefinitions.Owned {
		if bundled.Has(owned.Name) || reported.Has(owned.Name) {
			continue
		}
		reported.Insert(owned.Name)
		v.csv(fmt.Sprintf("%s[%d].name", pathOwnedCRDs, i), "owned CRD %q not found in bundle", owned.Name)
	}
}

func (v *validator) manifestKinds() {
	allowed := manifestKinds()
	for _, object := range v.bundle.Others {
		key := v.bundle.keyOf(&object)
		if _, ok := allowed[key.GroupKind]; !ok {
			v.add(v.bundle.files[key], "", "unsupported resource %q with kind %q of API group %q", key.name, key.Kind, key.Group)
		}
	}
}

func (v *validator) installModes() {
	b := v.bundle
	if len(b.supportedModes()) > 0 {
		return
	}
	// The words are those of the reference implementation, which knows three of them.
	v.unsupportedf("bundle must support at least one of %v install modes", slices.DeleteFunc(installModes(), func(mode operatorsv1alpha1.InstallModeType) bool {
		return mode == operatorsv1alpha1.InstallModeTypeMultiNamespace
	}))
}

// installModes are the modes in which an extension can be installed.
func installModes() []operatorsv1alpha1.InstallModeType {
	return []operatorsv1alpha1.InstallModeType{
		operatorsv1alpha1.InstallModeTypeAllNamespaces,
		operatorsv1alpha1.InstallModeTypeSingleNamespace,
		operatorsv1alpha1.InstallModeTypeOwnNamespace,
		operatorsv1alpha1.InstallModeTypeMultiNamespace,
	}
}

func (b *Bundle) supportedModes() []operatorsv1alpha1.InstallModeType {
	return slices.DeleteFunc(installModes(), func(mode operatorsv1alpha1.InstallModeType) bool { return !b.supports(mode) })
}
