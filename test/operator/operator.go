// Package operator holds the sample operator that tests and the demo install:
// its bundles, a catalog that offers them, and the ServiceAccount that may
// install them.
//
// It holds data and says where in it things are. It pushes and applies
// nothing.
package operator

import (
	"embed"
	"io/fs"
)

const (
	// Package is the name of the operator in the catalog.
	Package = "sample-operator"

	// Namespace is the one that Installer makes for the operator.
	Namespace = "sample-operator"

	// ServiceAccount is the one in Namespace that may install every version.
	ServiceAccount = "sample-operator-installer"

	// Registry is the host in the image references of Catalog. It does not
	// exist: the registry that serves the images stands in for it, as a mirror
	// or by rewriting the references.
	Registry = "registry.test"
)

// Bundles holds a registry+v1 bundle for each version, in
// bundles/<version>/{manifests,metadata}. Of these, 1.1.0 drops a ConfigMap
// that 1.0.0 has, and 2.0.0 adds an optional field to the custom resource.
//
//go:embed bundles
var Bundles embed.FS

// Catalog holds, below catalog/, a file-based catalog of the bundles:
// channel stable leads from 1.0.0 to 1.1.0, candidate on to 2.0.0.
//
//go:embed catalog
var Catalog embed.FS

// Deprecations holds, below deprecations/, what a catalog that deprecates
// bundle 1.0.0 and channel candidate has besides Catalog.
//
//go:embed deprecations
var Deprecations embed.FS

// Installer is a multi-document manifest: Namespace, ServiceAccount and the
// least RBAC that installing, upgrading and removing the operator takes.
//
//go:embed installer.yaml
var Installer []byte

// Bundle is the content of the bundle image of a version, such as "1.0.0". It
// fails with [fs.ErrNotExist] if there is no such version.
func Bundle(version string) (fs.FS, error) {
	dir := "bundles/" + version
	if _, err := fs.Stat(Bundles, dir); err != nil {
		return nil, err
	}
	return fs.Sub(Bundles, dir)
}

// Image is the reference that Catalog has for a version.
func Image(version string) string {
	return Registry + "/" + Package + ":v" + version
}
