package requirement

import (
	"encoding/json"
	"strings"
)

// Cluster is what requirements are checked against.
type Cluster struct {
	// Kubernetes is the version of the API server, such as "1.36.0"; empty if
	// it is not known, which meets every requirement on it.
	Kubernetes string

	// OpenShift is the version of OpenShift; empty on any other cluster, which
	// meets every requirement on it.
	OpenShift string

	// Serves says whether the cluster serves an API. It is not called if APIsErr
	// is set.
	Serves func(API) bool

	// APIsErr says why it is not known which APIs are served.
	APIsErr error

	// Extensions that are installed. They do not count if ExtensionsErr is set.
	Extensions []Extension

	// ExtensionsErr says why it is not known which extensions are installed.
	ExtensionsErr error
}

// API is a kind of object, in one version.
type API struct {
	Group   string `json:"group"`
	Version string `json:"version"`
	Kind    string `json:"kind"`
}

// String is the form that people know from the API server.
func (a API) String() string {
	return strings.TrimPrefix(a.Group+"/"+a.Version, "/") + ", Kind=" + a.Kind
}

// Extension is a bundle that is installed.
type Extension struct {
	// Name of the ClusterExtension.
	Name string

	Package string
	Version string

	// Properties of the bundle as a catalog has them; empty if none has the
	// bundle any more.
	Properties []*Property
}

// Property is a typed fact about a bundle, with its value as it stands in the
// catalog.
type Property struct {
	Type string `json:"type"`
	// Value is valid JSON, or nil when there is none.
	Value json.RawMessage `json:"value,omitempty"`
}
