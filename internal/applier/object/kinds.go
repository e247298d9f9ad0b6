package object

import (
	rbacv1 "k8s.io/api/rbac/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// Kinds of which more is known than their names.
var (
	CertificateKind = schema.GroupKind{Group: "cert-manager.io", Kind: "Certificate"}
	SecretKind      = schema.GroupKind{Kind: "Secret"}
	DefinitionKind  = schema.GroupKind{Group: apiextensionsv1.GroupName, Kind: "CustomResourceDefinition"}
	NamespaceKind   = schema.GroupKind{Kind: "Namespace"}
	ClaimKind       = schema.GroupKind{Kind: "PersistentVolumeClaim"}
	ClusterRoleKind = schema.GroupKind{Group: rbacv1.GroupName, Kind: "ClusterRole"}

	OperatorConditionKind = schema.GroupKind{Group: ClassicGroup, Kind: "OperatorCondition"}
)

// TextIn gives a field that is text; empty if there is none.
func TextIn(object *unstructured.Unstructured, fields ...string) string {
	text, _, _ := unstructured.NestedString(object.Object, fields...)
	return text
}
