package controller

import (
	"fmt"

	corev1 "k8s.io/api/core/v1"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
)

// BundleImage is an image as it is wanted.
type BundleImage struct {
	// Ref is the reference as the catalog or the spec has it.
	Ref string

	// Digest is what Ref stood for when this bundle was installed: that content
	// is wanted, whatever Ref stands for by now. Empty means what it stands for.
	Digest string
}

// imageOf makes sure that a bundle that is installed stays what it is. Only
// another bundle, or another reference, leads to other content. A tag that a spec names stands for
// what it stood for when the spec was looked at first.
func imageOf(target Target, installed *installation.Revision) BundleImage {
	image := BundleImage{Ref: target.Image}
	if installed != nil && installed.Image == target.Image && installed.Bundle == target.Bundle {
		image.Digest = installed.Digest
	} else if target.Digest != "" {
		image.Digest = target.Digest
	}
	return image
}

// Moved says that a tag does not stand any more for what was pulled under it.
type Moved struct {
	Image    string
	From, To string // digests
}

func (m *Moved) String() string {
	return fmt.Sprintf("image %s has moved from %s to %s", m.Image, m.From, m.To)
}

// MovedImageError says that content is needed and cannot be had: its tag has moved since it was
// looked up, and the registry has dropped what it stood for. What the tag stands for now is never
// installed under the name of the old.
type MovedImageError struct{ Moved Moved }

func (e *MovedImageError) Error() string {
	return fmt.Sprintf("%s, and %s is not in the registry any more: install another version or image, or have the tag moved back",
		e.Moved.String(), e.Moved.From)
}

// moveOf tells of a move that does not stand in the way; nil if there is none. It
// is no part of the status, because nobody looks for moves without another reason
// to ask the registry.
func moveOf(moved *Moved) *transition {
	if moved == nil {
		return nil
	}
	return &transition{
		kind: corev1.EventTypeWarning, reason: eventImageMoved, note: moved.String() + ": what is installed stays what it was",
	}
}
