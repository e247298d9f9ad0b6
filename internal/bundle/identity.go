package bundle

import (
	"encoding/json"
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// Identity names one bundle: what a catalog offers, what a release record
// remembers and what the status shows.
type Identity struct {
	// Package is part of the identity: bundles of two packages are never each
	// other's upgrade, even under one name.
	Package string

	// Name of the bundle as the catalog has it, such as "argocd-operator.v0.8.0".
	Name string

	// Version as text, release included ("1.0.0+2"). See [ParseVersion].
	Version string
}

// Identity is what the bundle says of itself, which is what a catalog that is made of it has. It
// fails with an [*UnsupportedError] for a bundle that does not tell its version.
func (b *Bundle) Identity() (Identity, error) {
	found, err := b.format().identity(b)
	if err != nil {
		return Identity{}, err
	}
	return found, found.check()
}

// csvIdentity is that of the ClusterServiceVersion.
func (b *Bundle) csvIdentity() Identity {
	found := Identity{Package: b.Package, Name: b.CSV.Name, Version: b.CSV.Spec.Version.String()}
	var stated []property
	if annotation := b.CSV.Annotations[propertiesAnnotation]; annotation != "" {
		_ = json.Unmarshal([]byte(annotation), &stated) // what is no list names no version
	}
	for _, one := range stated {
		var of struct {
			Version string `json:"version"`
		}
		if one.Type == propertyPackage && json.Unmarshal(one.Value, &of) == nil && of.Version != "" {
			found.Version = of.Version
			break
		}
	}
	return found
}

// check refuses what no catalog could have: it is kept, and shown in status.
func (i Identity) check() error {
	refuse := func(format string, args ...any) error {
		return &UnsupportedError{Reasons: []string{fmt.Sprintf(format, args...)}}
	}
	switch {
	case len(validation.IsDNS1123Subdomain(i.Package)) > 0:
		return refuse("no package can have the name %s", excerpt.Quote(i.Package))
	case i.Name == "" || len(i.Name) > maxIdentityName:
		return refuse("no bundle can have the name %s", excerpt.Quote(i.Name))
	}
	if _, err := ParseVersion(i.Version); err != nil {
		return refuse("version %s: %v", excerpt.Quote(i.Version), err)
	}
	return nil
}

// maxIdentityName bounds the name of a bundle in bytes, as catalogs do.
const maxIdentityName = 1024

// propertyPackage is the property by which a bundle tells its version.
const propertyPackage = "olm.package"
