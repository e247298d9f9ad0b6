package image

import (
	"fmt"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/docker"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/types"

	"github.com/clusterextensions/operator-controller/internal/imageref"
)

// imageRef is a reference with an explicit registry and either a tag or a
// digest.
type imageRef struct {
	asked string
	named reference.Named
}

// CheckReference returns a *ReferenceError unless text can be pulled as far as
// its form goes.
func CheckReference(text string) error {
	_, err := parseReference(text)
	return err
}

// Registry returns the host, with its port if there is one, that a reference names.
// The error is a *ReferenceError.
func Registry(text string) (string, error) {
	ref, err := parseReference(text)
	if err != nil {
		return "", err
	}
	return reference.Domain(ref.named), nil
}

// Repository returns the name of the repository that a reference names, with its registry and
// without a tag, which is what ImagePolicies go by. The error is a *ReferenceError.
func Repository(text string) (string, error) {
	ref, err := parseReference(text)
	if err != nil {
		return "", err
	}
	return ref.named.Name(), nil
}

// parseReference parses a reference in canonical form. A reference with both a
// tag and a digest means the digest: the tag is only a note for people.
// The error is a *ReferenceError.
func parseReference(text string) (imageRef, error) {
	named, err := reference.ParseNamed(text)
	if err != nil {
		return imageRef{}, &ReferenceError{Ref: text, Err: err}
	}
	if reference.IsNameOnly(named) {
		return imageRef{}, &ReferenceError{Ref: text, Err: errNoTagOrDigest}
	}
	ref := imageRef{asked: text, named: named}
	if d := imageref.Digest(text); d != "" {
		return ref.at(d)
	}
	return ref, nil
}

// at returns the reference of the image in the same repository that has the
// given digest. The error is a *ReferenceError.
func (r imageRef) at(d digest.Digest) (imageRef, error) {
	if err := d.Validate(); err != nil {
		return imageRef{}, &ReferenceError{Ref: r.asked, Err: err}
	}
	named, err := reference.WithDigest(reference.TrimNamed(r.named), d)
	if err != nil {
		return imageRef{}, &ReferenceError{Ref: r.asked, Err: err}
	}
	return imageRef{asked: r.asked, named: named}, nil
}

// digest returns the digest of the reference, if it has one.
func (r imageRef) digest() (digest.Digest, bool) {
	digested, ok := r.named.(reference.Digested)
	if !ok {
		return "", false
	}
	return digested.Digest(), true
}

// canonical returns repository@digest.
func (r imageRef) canonical(d digest.Digest) string {
	return fmt.Sprintf("%s@%s", r.named.Name(), d)
}

// transport returns the reference as the registry transport wants it.
func (r imageRef) transport() (types.ImageReference, error) {
	ref, err := docker.NewReference(r.named)
	if err != nil {
		return nil, &ReferenceError{Ref: r.asked, Err: err}
	}
	return ref, nil
}
