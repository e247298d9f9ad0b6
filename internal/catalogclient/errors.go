package catalogclient

import (
	"errors"
	"fmt"
	"time"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
)

var (
	// ErrEmptyCatalog says that a server sent a body without any object.
	ErrEmptyCatalog = errors.New("the catalog has no content")
	// ErrUnknownLength says that a server sent a body of which nobody can tell
	// whether it is complete.
	ErrUnknownLength = errors.New("the response has neither a length nor a chunked encoding, so that a truncated body would go unnoticed")
	// ErrForgotten says that the catalog was forgotten while it was read.
	ErrForgotten = errors.New("the catalog was removed while its content was read")
)

// NotLoadedError says that no content of a catalog was ever read.
type NotLoadedError struct {
	Catalog string
	// Err is why the last attempt to read it failed; nil when there was none.
	Err error
}

func (e *NotLoadedError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("cache for catalog %q not found", e.Catalog)
	}
	return fmt.Sprintf("error retrieving cache for catalog %q: %v", e.Catalog, e.Err)
}

// NotYet reports whether the content may be had soon: nothing is known to be wrong with it.
func (e *NotLoadedError) NotYet() bool {
	_, inStream := errors.AsType[*fbc.StreamError](e.Err)
	_, inObject := errors.AsType[*fbc.ObjectError](e.Err)
	_, tooMuch := errors.AsType[*fbc.LimitError](e.Err)
	_, encoded := errors.AsType[*EncodingError](e.Err)
	return !inStream && !inObject && !tooMuch && !encoded && !errors.Is(e.Err, ErrEmptyCatalog)
}

// Unwrap returns the error of the last attempt.
func (e *NotLoadedError) Unwrap() error { return e.Err }

// MalformedPackageError says that a catalog's content for one package cannot
// be used. It stays so until the catalog changes.
type MalformedPackageError struct {
	Catalog, Package string
	// Detail names the object that is malformed and what is wrong with it.
	Detail string
}

// Malformed reports true: asking again gives the same.
func (e *MalformedPackageError) Malformed() bool { return true }

func (e *MalformedPackageError) Error() string {
	return fmt.Sprintf("error loading package %q: catalog %q: %s", e.Package, e.Catalog, e.Detail)
}

// StatusError says that a server answered with something else than content.
type StatusError struct {
	// Code is the HTTP status code.
	Code int
	// Detail is the start of a plain text body, or "".
	Detail string
}

func (e *StatusError) Error() string {
	text := fmt.Sprintf("error: received unexpected response status code %d", e.Code)
	if e.Detail == "" {
		return text
	}
	return text + ": " + e.Detail
}

// EncodingError says that a server compressed a body in a way that was not asked
// for and is not understood.
type EncodingError struct {
	// Encoding is the Content-Encoding of the response.
	Encoding string
}

func (e *EncodingError) Error() string {
	return fmt.Sprintf("unexpected content encoding %q", e.Encoding)
}

// StalledError says that a server stopped sending, or took too long in all.
type StalledError struct {
	// After is the time that passed without progress or, when Total is set,
	// since the request.
	After time.Duration
	Total bool
}

func (e *StalledError) Error() string {
	if e.Total {
		return fmt.Sprintf("the content did not arrive within %s", e.After)
	}
	return fmt.Sprintf("no data received for %s", e.After)
}

// LengthError says that a body is not of the announced size in bytes.
type LengthError struct {
	Announced, Received int64
}

func (e *LengthError) Error() string {
	return fmt.Sprintf("received %d of %d bytes", e.Received, e.Announced)
}

// Timeout reports true: what stalled may succeed when it is tried again.
func (e *StalledError) Timeout() bool { return true }
