package release

import (
	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// Revision is what one revision of a release was made from.
type Revision struct {
	Bundle bundle.Identity

	// Image is the reference of the bundle image as the catalog has it.
	Image string

	// Digest is what Image stood for when it was pulled. Empty when that is not
	// known, as in records of the reference implementation.
	Digest string

	// Inputs is a digest over the user's configuration of the bundle, and over
	// nothing that the controller itself is told, such as who issues certificates.
	// Empty in records of the reference implementation, which knows no such thing.
	Inputs string
}
