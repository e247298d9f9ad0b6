// Package v1alpha1 is the API by which an administrator says whose images are used: the kind
// ImagePolicy of policy.clusterextensions.dev/v1alpha1. The kinds of OLM v1 do not have it.
//
// Like the API of OLM v1, the package holds data only.
//
// +kubebuilder:object:generate=true
// +groupName=policy.clusterextensions.dev
package v1alpha1
