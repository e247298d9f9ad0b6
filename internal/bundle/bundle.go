package bundle

import (
	operatorsv1alpha1 "github.com/operator-framework/api/pkg/operators/v1alpha1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Bundle is a bundle as read from its files. Nothing in this
// package changes a Bundle after [Parse] returned it, so one may be rendered
// many times and by several goroutines.
type Bundle struct {
	// Format as metadata/annotations.yaml has it.
	Format Format

	// Package name as metadata/annotations.yaml has it.
	Package string

	// CSV of a registry+v1 bundle with metadata/properties.yaml merged into its olm.properties
	// annotation. It is read, never applied.
	CSV operatorsv1alpha1.ClusterServiceVersion

	// CRDs of a registry+v1 bundle, in the order of the files.
	CRDs []apiextensionsv1.CustomResourceDefinition

	// Others are all other manifests, in the order of the files, as authored.
	Others []unstructured.Unstructured

	// Chart of a Helm chart; nil for a bundle of another format.
	Chart *Chart

	// Properties and Dependencies as metadata/properties.yaml and
	// metadata/dependencies.yaml have them.
	Properties   []Property
	Dependencies []Property

	files map[manifestKey]string
}

// manifestKey identifies a manifest inside a bundle. The namespace is part of
// it where a bundle takes any object: whatever another one ships goes to the
// cluster or to one namespace, that of the installation.
type manifestKey struct {
	schema.GroupKind
	namespace, name string
}

// The ClusterServiceVersion is the only one of its kind, whatever group and
// name it has.
func csvKey() manifestKey {
	return manifestKey{GroupKind: schema.GroupKind{Kind: kindCSV}}
}

func crdKey(name string) manifestKey {
	return manifestKey{GroupKind: schema.GroupKind{Group: groupAPIExtensions, Kind: kindCRD}, name: name}
}

func (b *Bundle) keyOf(object *unstructured.Unstructured) manifestKey {
	key := manifestKey{GroupKind: object.GroupVersionKind().GroupKind(), name: object.GetName()}
	if b.format().takesAnyObject() {
		key.namespace = object.GetNamespace()
	}
	return key
}

// NeedsCertificates says that rendering the bundle takes a [CertificateProvider].
func (b *Bundle) NeedsCertificates() bool {
	return b.servedWithCertificates() != ""
}

// servedWithCertificates is what of the bundle takes a certificate; empty for nothing.
func (b *Bundle) servedWithCertificates() string {
	switch {
	case len(b.CSV.Spec.WebhookDefinitions) > 0:
		return "webhookDefinitions"
	case len(b.ownedAPIs()) > 0:
		return "apiServiceDefinitions"
	default:
		return ""
	}
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
