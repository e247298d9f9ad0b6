package image

import (
	"errors"
	"fmt"
	"strings"

	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

var (
	// ErrContent matches every error whose cause lies in the image itself:
	// pulling the same digest again fails the same way. It is only reported
	// for bytes whose digest has been verified.
	ErrContent = errors.New("unusable image")
	// ErrNotFound matches the error of a registry that answered that it does
	// not have the image.
	ErrNotFound = errors.New("image not found")

	errNoTagOrDigest = errors.New("tag or digest is needed")
)

// maxTextBytes keeps what a registry answered from filling a message.
const maxTextBytes = 1024

// ReferenceError says that a reference cannot name an image: it does not
// parse, has no explicit registry, or has neither tag nor digest.
type ReferenceError struct {
	Ref string
	Err error
}

func (e *ReferenceError) Error() string {
	if errors.Is(e.Err, errNoTagOrDigest) {
		return fmt.Sprintf("error creating reference: image reference %q: %v", e.Ref, e.Err)
	}
	return fmt.Sprintf("error parsing image reference %q: %v", e.Ref, e.Err)
}

func (e *ReferenceError) Unwrap() error { return e.Err }

// Bound names one of the [Limits].
type Bound string

// The bounds a [LimitError] can name.
const (
	BoundManifestBytes   Bound = "manifest bytes"
	BoundLayers          Bound = "layers"
	BoundCompressedBytes Bound = "compressed bytes"
	BoundExpandedBytes   Bound = "expanded bytes"
	BoundEntries         Bound = "archive entries"
	BoundContentBytes    Bound = "content bytes"
	BoundFileBytes       Bound = "file bytes"
	BoundKeptEntries     Bound = "files, directories and whiteouts"
	BoundPathBytes       Bound = "path bytes"
	BoundPathDepth       Bound = "path elements"
)

// LimitError says which bound an image exceeds. Entry is the archive entry or
// the blob at which that showed; it may be empty. It matches [ErrContent].
type LimitError struct {
	Bound Bound
	Limit int64
	Entry string
}

func (e *LimitError) Error() string {
	text := fmt.Sprintf("image exceeds the limit of %d %s", e.Limit, e.Bound)
	if e.Entry != "" {
		text += " at " + excerpt.Quote(e.Entry)
	}
	return text
}

// Is reports whether target is [ErrContent].
func (e *LimitError) Is(target error) bool { return target == ErrContent }

// LinkError says that an entry of the image is a symbolic or a hard link
// where only files and directories may be. It matches [ErrContent].
type LinkError struct{ Entry string }

func (e *LinkError) Error() string {
	return fmt.Sprintf("image entry %s is a link: links are refused", excerpt.Quote(e.Entry))
}

// Is reports whether target is [ErrContent].
func (e *LinkError) Is(target error) bool { return target == ErrContent }

// EntryError says that an entry of the image has a name or a type that is
// refused. It matches [ErrContent].
type EntryError struct {
	Entry   string
	Problem string
}

func (e *EntryError) Error() string {
	return fmt.Sprintf("image entry %s: %s", excerpt.Quote(e.Entry), e.Problem)
}

// Is reports whether target is [ErrContent].
func (e *EntryError) Is(target error) bool { return target == ErrContent }

// LabelError says that a catalog image does not tell where its catalog is:
// the label is missing, or names a directory that the image does not have
// (Value). It matches [ErrContent].
type LabelError struct {
	Label string
	Value string
}

func (e *LabelError) Error() string {
	if e.Value == "" {
		return fmt.Sprintf("catalog image is missing the required label %q", e.Label)
	}
	return fmt.Sprintf("catalog image has no directory %s, which its label %q names", excerpt.Quote(e.Value), e.Label)
}

// Is reports whether target is [ErrContent].
func (e *LabelError) Is(target error) bool { return target == ErrContent }

// FormatError says that a part of the image (Object) is malformed or of a
// kind that is not supported. It matches [ErrContent].
type FormatError struct {
	Object string
	Err    error
}

func (e *FormatError) Error() string {
	return fmt.Sprintf("%s: %s", e.Object, excerpt.Line(e.Err.Error(), maxTextBytes))
}

func (e *FormatError) Unwrap() error { return e.Err }

// Is reports whether target is [ErrContent].
func (e *FormatError) Is(target error) bool { return target == ErrContent }

// DigestError says that a registry sent other bytes than the digest names.
// Got is empty where it sent more bytes than the manifest declares.
type DigestError struct {
	Object string
	Want   digest.Digest
	Got    digest.Digest
}

func (e *DigestError) Error() string {
	if e.Got == "" {
		return fmt.Sprintf("registry sent more bytes than declared for %s %s", e.Object, e.Want)
	}
	return fmt.Sprintf("registry sent %s with digest %s instead of %s", e.Object, e.Got, e.Want)
}

// PolicyError says that a policy refuses the image: the signature policy (Err), or ImagePolicies
// (Verdict).
type PolicyError struct {
	Ref     string
	Verdict imagepolicy.Verdict
	Err     error
}

func (e *PolicyError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("image %q is refused: %s", e.Ref, excerpt.Line(strings.Join(e.Verdict.Refusals, "; "), maxTextBytes))
	}
	return fmt.Sprintf("image %q is rejected by the signature policy: %s", e.Ref, excerpt.Line(e.Err.Error(), maxTextBytes))
}

func (e *PolicyError) Unwrap() error { return e.Err }

// mirrorsError is the error of a registry that was asked by files that the program has written. What
// to edit is what they were made of, and not these.
type mirrorsError struct {
	files string // as the error has them
	err   error
}

func (e *mirrorsError) Error() string {
	return strings.ReplaceAll(e.err.Error(), "in one of "+e.files, "by registries.conf or by a mirror set of the cluster (mirrorSourcePolicy)")
}

func (e *mirrorsError) Unwrap() error { return e.err }

// DiskError says that the cache could not be written or read.
type DiskError struct {
	Op  string
	Err error
}

func (e *DiskError) Error() string { return fmt.Sprintf("image cache: %s: %v", e.Op, e.Err) }

func (e *DiskError) Unwrap() error { return e.Err }

// LeadError says that a registry leads to a URL that is not followed, by a redirect or
// as the place to get a token from. It comes within a *RegistryError.
type LeadError struct {
	Registry string // host[:port]
	To       string // scheme and host
	Problem  string
}

func (e *LeadError) Error() string {
	return fmt.Sprintf("registry %q leads to %q, which is not followed: %s", e.Registry, e.To, e.Problem)
}

// RegistryError says that talking to a registry failed while doing Op. Its
// text is free of socket addresses, user information and URL queries. It
// matches [ErrNotFound] where the registry does not have the image, and the
// context's error where the caller gave up.
type RegistryError struct {
	Op  string
	Err error
}

func (e *RegistryError) Error() string {
	return fmt.Sprintf("error %s: %s", e.Op, excerpt.Line(excerpt.Scrub(e.Err.Error()), maxTextBytes))
}

func (e *RegistryError) Unwrap() error { return e.Err }

// Refused reports whether the registry wants other credentials, or any.
func (e *RegistryError) Refused() bool { return isRefused(e.Err) }

// Is reports whether target is [ErrNotFound] and the registry said so.
func (e *RegistryError) Is(target error) bool {
	return target == ErrNotFound && isNotFound(e.Err)
}
