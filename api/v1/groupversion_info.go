package v1

import (
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

var (
	// GroupVersion is the group and version of every kind in this package.
	GroupVersion = schema.GroupVersion{Group: "olm.operatorframework.io", Version: "v1"}

	// SchemeBuilder collects the functions that register this package's kinds.
	SchemeBuilder = runtime.NewSchemeBuilder(addKnownTypes)

	// AddToScheme registers this package's kinds with a scheme.
	AddToScheme = SchemeBuilder.AddToScheme
)

// Kinds of this package.
const (
	ClusterExtensionKind = "ClusterExtension"
	ClusterCatalogKind   = "ClusterCatalog"
)

func addKnownTypes(scheme *runtime.Scheme) error {
	scheme.AddKnownTypes(GroupVersion,
		&ClusterExtension{}, &ClusterExtensionList{},
		&ClusterCatalog{}, &ClusterCatalogList{},
	)
	metav1.AddToGroupVersion(scheme, GroupVersion)
	return nil
}
