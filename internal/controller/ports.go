package controller

import (
	"context"
	"fmt"
	"io/fs"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Owner is the extension as those see it who touch its content.
type Owner struct {
	Name           string
	UID            types.UID
	Namespace      string
	ServiceAccount string
}

// Installed is what a release record remembers.
type Installed struct {
	Bundle bundle.Identity

	// Image is the reference of the bundle image as the catalog had it.
	Image string

	// Inputs is a digest over what besides the bundle shaped the objects; empty
	// when the record says nothing about it.
	Inputs string
}

// Installation is what the release records of an extension say.
type Installation struct {
	// Installed is nil when nothing is.
	Installed *Installed

	// Unfinished says that a later revision was begun and not completed.
	Unfinished bool
}

// Revision is what is to be installed.
type Revision struct {
	Installed

	Objects     []*unstructured.Unstructured
	Annotations map[string]string
}

// Applied is what an operation on the content came to.
type Applied struct {
	// Began says that content was written, even if the operation failed later.
	Began bool

	// RecheckAfter is when to repair again because changes to some objects
	// cannot be watched. Zero: no need.
	RecheckAfter time.Duration
}

// Releases keeps the content of extensions, as their ServiceAccount. All errors
// are worth a retry.
type Releases interface {
	// Observe makes no request when nothing can have changed.
	Observe(ctx context.Context, owner Owner) (Installation, error)

	// Apply installs or upgrades. It checks everything before it writes.
	Apply(ctx context.Context, owner Owner, revision Revision) (Applied, error)

	// Repair restores the installed revision where it was changed; it makes no
	// request when nothing was.
	Repair(ctx context.Context, owner Owner) (Applied, error)
}

// Bundles fetches the files of bundle images.
type Bundles interface {
	// Fetch gives the files of an image for an extension, which are at hand
	// until they are closed. It fails with [*UnusableImageError] when the
	// reference itself is the problem.
	Fetch(ctx context.Context, owner Owner, image string) (Files, error)
}

// Files of a bundle. Close is always set and may be called once.
type Files struct {
	fs.FS

	Close func()
}

// UnusableImageError says that no image can be had under a reference, whenever
// it is tried.
type UnusableImageError struct {
	Image string
	Err   error
}

func (e *UnusableImageError) Error() string {
	if e.Err == nil {
		return fmt.Sprintf("image reference %q cannot be used", e.Image)
	}
	return e.Err.Error()
}

// Unwrap gives the cause.
func (e *UnusableImageError) Unwrap() error { return e.Err }

// Catalogs holds the content of catalogs.
type Catalogs interface {
	// Package is nil when the catalog has no such package. It makes no request.
	// It fails when no content of the catalog is at hand.
	Package(catalog, name string) (*resolve.Prepared, error)

	// Refresh reads the content if it is not yet held, and names the packages
	// that differ from before. What was held stays until all has been read.
	Refresh(ctx context.Context, source CatalogSource) (changed []string, err error)

	// Forget drops the content of a catalog that is gone.
	Forget(catalog string) error
}

// CatalogSource is one state of the content of a catalog.
type CatalogSource struct {
	Catalog string

	// Digest is the image reference by digest: the identity of the content.
	Digest string

	// BaseURL under which the content is served.
	BaseURL string
}
