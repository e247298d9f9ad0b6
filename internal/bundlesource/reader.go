// Package bundlesource reads a bundle from wherever a person has it: a folder or an
// image -> its files, or the objects that would be installed from it.
//
// Nothing that was pulled is kept, and what is read is bounded by the limits of bundles
// and images.
package bundlesource

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/image"
)

// Reader reads bundles. Images says how they are pulled; Dir of it is not used.
type Reader struct{ Images image.Config }

// InvalidError says that there is no bundle that a text could stand for.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.Err }

// NoIssuerError says that a bundle has webhooks, and nobody issues certificates.
type NoIssuerError struct{ Err error }

func (e *NoIssuerError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *NoIssuerError) Unwrap() error { return e.Err }

// Files hands the content of a folder or, where there is none, of an image to use. The
// error may be an *InvalidError.
func (r Reader) Files(ctx context.Context, from string, use func(fs.FS) error) error {
	switch isDir, err := isFolder(from); {
	case err != nil:
		return &InvalidError{Err: err}
	case isDir:
		return use(os.DirFS(from))
	}
	if err := image.CheckReference(from); err != nil {
		return &InvalidError{Err: fmt.Errorf("%q is neither a folder nor an image: %w", from, err)}
	}
	found, err := image.Once(ctx, r.Images, image.Request{Ref: from, Select: image.BundleContent})
	if err != nil {
		return err
	}
	defer found.Close()
	return use(found.Files)
}

// isFolder reports whether there is a folder at path. That there is something
// else, or that it cannot be told, is an error.
func isFolder(path string) (bool, error) {
	info, err := os.Stat(path)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return false, err
	case !info.IsDir():
		return false, fmt.Errorf("%s is not a folder", path)
	}
	return true, nil
}

// Rendering is how a bundle is rendered.
type Rendering struct {
	Namespace string

	// Config is the configuration, YAML or JSON; empty for none.
	Config []byte

	// Certificates is asked for bundles with webhooks only.
	Certificates func() (bundle.CertificateProvider, error)
}

// Objects renders the bundle as the controller does it. The error may be an
// *InvalidError, a *NoIssuerError, a [*bundle.InvalidError] or a [*bundle.ConfigError].
func (r Reader) Objects(ctx context.Context, from string, as Rendering) (objects []*unstructured.Unstructured, err error) {
	err = r.Files(ctx, from, func(files fs.FS) (err error) {
		objects, err = as.objects(files)
		return err
	})
	return objects, err
}

func (r Rendering) objects(files fs.FS) ([]*unstructured.Unstructured, error) {
	content, err := bundle.Parse(files)
	if err != nil {
		return nil, err
	}
	options := bundle.Options{InstallNamespace: r.Namespace, ConditionName: true}
	if content.HasWebhooks() {
		if options.Certificates, err = r.Certificates(); err != nil {
			return nil, err
		}
	}
	if options.Config, err = bundle.ParseConfig(content, r.Namespace, r.Config); err != nil {
		return nil, err
	}
	objects, err := bundle.Render(content, options)
	if err != nil && content.HasWebhooks() && options.Certificates == bundle.NoCertificates {
		err = &NoIssuerError{Err: err}
	}
	return objects, err
}
