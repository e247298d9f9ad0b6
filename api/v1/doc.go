// Package v1 is the API of the controller: the kinds ClusterExtension and
// ClusterCatalog of olm.operatorframework.io/v1, their validation, and the
// names other components may rely on (conditions, reasons, labels,
// finalizers).
//
// The validation markers here become config/crd; they accept every manifest
// that the published OLM v1 API accepts. The package holds data only: it must
// not import a client, decide anything, or know who reconciles the objects.
//
// +kubebuilder:object:generate=true
// +groupName=olm.operatorframework.io
package v1
