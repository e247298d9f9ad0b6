// Package crd has the definitions of the kinds of the API, as they are installed.
package crd

import _ "embed" // for the definitions

// ClusterExtension is the CustomResourceDefinition of ClusterExtension, as YAML.
//
//go:embed bases/olm.operatorframework.io_clusterextensions.yaml
var ClusterExtension []byte

// ImagePolicy is the CustomResourceDefinition of ImagePolicy, as YAML.
//
//go:embed bases/policy.clusterextensions.dev_imagepolicies.yaml
var ImagePolicy []byte
