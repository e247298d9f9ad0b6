package installation

import (
	"context"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/preflight"
)

// Revision is what one revision of a release was made from, as its record remembers it.
type Revision struct {
	Bundle bundle.Identity

	// Image is the reference of the bundle image as the catalog had it.
	Image string

	// Digest is what Image stood for when it was pulled. Empty when that is not
	// known, as in records of the reference implementation.
	Digest string

	// Inputs is a digest over the user's configuration of the bundle, and over
	// nothing that the controller itself is told: a restart with another issuer of
	// certificates upgrades nothing. Empty in records of the reference implementation,
	// which knows no such thing.
	Inputs string

	// OperatorCondition is the name of that of the bundle, in the namespace of the
	// installation; empty if there is none.
	OperatorCondition string
}

// State is what the release records of an extension say.
type State struct {
	// Installed is the revision whose content is on the cluster; nil for none.
	Installed *Revision

	// Unfinished says that a revision after the installed one was begun and has
	// left the content somewhere between the two.
	Unfinished bool
}

// Desired is a revision with the objects that it consists of.
type Desired struct {
	Revision

	// Objects are not changed. They carry no marks of an owner.
	Objects []*unstructured.Unstructured

	// Preflight is what is to be let pass of what speaks against it.
	Preflight preflight.Policy

	// Annotations go into the release's chart metadata.
	Annotations map[string]string

	// BeforeWrite is called after all checks and before the first write, of content
	// or of records. If it fails, nothing is written. It is confirmed if the API server has
	// said in the course of it that the extension is there and is to stay, which is not asked
	// again then. It may be nil.
	BeforeWrite func(context.Context) (confirmed bool, err error)
}
