package resolve

import (
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/imageref"
	"github.com/clusterextensions/operator-controller/internal/requirement"
)

// Policy says which bundles may follow the installed one.
type Policy string

const (
	// CatalogProvided allows only the upgrades that a channel entry declares.
	// It is also what every unknown policy, the empty one included, means.
	CatalogProvided Policy = "CatalogProvided"

	// SelfCertified allows every bundle of the package, downgrades included.
	SelfCertified Policy = "SelfCertified"
)

// Request is what is wanted and what is there.
type Request struct {
	// Package to choose a bundle of.
	Package string

	// Range that the version must be in; the zero value is any version.
	Range Range

	// Exactly is the one bundle that is asked for among those of Range; the zero value is
	// any.
	Exactly Exactly

	// Channels that the bundle and the upgrade to it must be in, by name;
	// none means every channel, and bundles in no channel too.
	Channels []string

	// Policy for upgrades from Installed.
	Policy Policy

	// Installed is nil if nothing is. It need not be in any catalog. A bundle of
	// another package has no upgrades.
	Installed *bundle.Identity

	// Cluster that has to meet the requirements of a bundle. Without one they
	// are not held against any.
	Cluster *requirement.Cluster
}

// Exactly names a bundle more closely than a range can: ranges know of no releases, and of
// no images.
type Exactly struct {
	// Version as text, release included; empty for any bundle.
	Version string

	// Digest of the image of that version; empty for any image. An image by tag may have it.
	Digest string
}

// is says whether a bundle may be the one.
func (e Exactly) is(n *node) bool {
	switch {
	case e.Version == "":
		return true
	case e.Version != n.version:
		return false
	case e.Digest == "":
		return true
	}
	digest := imageref.Digest(n.image).String()
	return digest == "" || digest == e.Digest
}

// Catalog is one catalog that the request may draw from.
type Catalog struct {
	// Name is unique among the catalogs of a request.
	Name string

	// Priority decides between catalogs; larger wins.
	Priority int32

	// Package is nil if the catalog does not have the requested package, and
	// is not looked at if Err is set.
	Package *Prepared

	// Err says why the catalog could not be read. Such a catalog stops a
	// resolution only if it could change the answer; see [Resolve].
	Err error
}
