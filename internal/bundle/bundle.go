package bundle

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Bundle is a registry+v1 bundle as read from its files. Nothing in this
// package changes a Bundle after [Parse] returned it, so one may be rendered
// many times and by several goroutines.
type Bundle struct {
	// Package name as metadata/annotations.yaml has it.
	Package string

	// CSV with metadata/properties.yaml merged into its olm.properties
	// annotation. It is read, never applied.
	CSV operatorsv1alpha1.ClusterServiceVersion

	// CRDs in the order of the files.
	CRDs []apiextensionsv1.CustomResourceDefinition

	// Others are all other manifests, in the order of the files, as authored.
	Others []unstructured.Unstructured

	files map[manifestKey]string
}

// manifestKey identifies a manifest inside a bundle. The namespace is not part
// of it: whatever a bundle ships goes to the cluster or to one namespace, that
// of the installation.
type manifestKey struct {
	schema.GroupKind
	name string
}

// The ClusterServiceVersion is the only one of its kind, whatever group and
// name it has.
func csvKey() manifestKey {
	return manifestKey{GroupKind: schema.GroupKind{Kind: kindCSV}}
}

func crdKey(name string) manifestKey {
	return manifestKey{GroupKind: schema.GroupKind{Group: groupAPIExtensions, Kind: kindCRD}, name: name}
}

func keyOf(object *unstructured.Unstructured) manifestKey {
	return manifestKey{GroupKind: object.GroupVersionKind().GroupKind(), name: object.GetName()}
}

func (b *Bundle) csvFile() string {
	return b.files[csvKey()]
}

// supports is true when any entry for the mode says so.
func (b *Bundle) supports(mode operatorsv1alpha1.InstallModeType) bool {
	for _, declared := range b.CSV.Spec.InstallModes {
		if declared.Type == mode && declared.Supported {
			return true
		}
	}
	return false
}

func (b *Bundle) deployments() []operatorsv1alpha1.StrategyDeploymentSpec {
	return b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs
}
