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

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/helmchart"
	"github.com/clusterextensions/operator-controller/internal/image"
)

// Reader reads bundles.
type Reader struct {
	// Images says how they are pulled; Dir of it is not used.
	Images image.Config

	// Known has the files of images, by their references, that need not be pulled.
	Known map[string]fs.FS
}

// InvalidError says that there is no bundle that a text could stand for.
type InvalidError struct{ Err error }

func (e *InvalidError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *InvalidError) Unwrap() error { return e.Err }

// NoIssuerError says that a bundle takes certificates, and nobody issues certificates.
type NoIssuerError struct{ Err error }

func (e *NoIssuerError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *NoIssuerError) Unwrap() error { return e.Err }

// Files hands the content of what is on this machine or, where there is nothing, of an image
// to use. The error may be an *InvalidError.
func (r Reader) Files(ctx context.Context, from string, use func(fs.FS) error) error {
	if _, err := os.Stat(from); !errors.Is(err, fs.ErrNotExist) {
		files, err := Local(from)
		if err != nil {
			return &InvalidError{Err: err}
		}
		return use(files)
	}
	if err := image.CheckReference(from); err != nil {
		return &InvalidError{Err: fmt.Errorf("%q is neither a folder nor an image: %w", from, err)}
	}
	return r.ImageFiles(ctx, from, use)
}

// charts is one engine for all who read, so that there is one rendering at a time.
var charts = helmchart.New()

// Charts renders the templates of charts.
func (Reader) Charts(ctx context.Context) bundle.ChartEngine { return charts.For(ctx) }

// Local has the files of a bundle on this machine: those of a folder, where a chart, which says
// so by a file of its own, is read as it would be packaged, or those of a packaged chart.
func Local(name string) (fs.FS, error) {
	info, err := os.Stat(name)
	switch {
	case err != nil:
		return nil, err
	case !info.IsDir():
		return packaged(name)
	}
	if files := os.DirFS(name); !helmchart.IsFolder(files) {
		return files, nil
	}
	return helmchart.Package(name)
}

// packaged has the files of a packaged chart.
func packaged(name string) (fs.FS, error) {
	file, err := os.Open(name)
	if err != nil {
		return nil, err
	}
	defer func() { _ = file.Close() }()
	files, err := helmchart.Unpack(file)
	if err != nil {
		return nil, fmt.Errorf("%s is neither a folder nor a packaged chart: %w", name, err)
	}
	return files, nil
}

// ImageFiles is [Reader.Files] for an image that a catalog names, which stands for no folder.
func (r Reader) ImageFiles(ctx context.Context, ref string, use func(fs.FS) error) error {
	found, err := image.Once(ctx, r.Images, image.Request{Ref: ref, Select: image.BundleContent})
	if err != nil {
		return err
	}
	defer found.Close()
	return use(found.Files)
}

// Rendering is how a bundle is rendered.
type Rendering struct {
	Namespace string

	// Config is the configuration, YAML or JSON; empty for none.
	Config []byte

	// Certificates is asked for bundles with webhooks or API services only.
	Certificates func() (bundle.CertificateProvider, error)

	// Release is what the templates of a chart get to know; the zero value is for an
	// extension of the name of the chart, on a cluster that nobody knows.
	Release bundle.ChartRelease

	// Lookup answers templates that may look at the cluster; nil where there is none.
	Lookup bundle.ChartLookup
}

// Render renders the bundle as the controller does it. The error may be an
// *InvalidError, a *NoIssuerError, a [*bundle.InvalidError] or a [*bundle.ConfigError].
func (r Reader) Render(ctx context.Context, from string, as Rendering) (rendered bundle.Rendered, err error) {
	err = r.Files(ctx, from, func(files fs.FS) (err error) {
		rendered, err = as.render(files, r.Charts(ctx))
		return err
	})
	return rendered, err
}

// RenderImage is [Reader.Render] for an image that a catalog names, which stands for no folder.
func (r Reader) RenderImage(ctx context.Context, ref string, as Rendering) (rendered bundle.Rendered, err error) {
	err = r.ImageFiles(ctx, ref, func(files fs.FS) (err error) {
		rendered, err = as.render(files, r.Charts(ctx))
		return err
	})
	return rendered, err
}

func (r Rendering) render(files fs.FS, charts bundle.ChartEngine) (bundle.Rendered, error) {
	content, err := bundle.Parse(files)
	if err != nil {
		return bundle.Rendered{}, err
	}
	options := bundle.Options{InstallNamespace: r.Namespace, Charts: charts, Release: r.Release, Lookup: r.Lookup}
	if content.NeedsCertificates() {
		if options.Certificates, err = r.Certificates(); err != nil {
			return bundle.Rendered{}, err
		}
	}
	if options.Config, err = bundle.ParseConfig(content, r.Namespace, r.Config); err != nil {
		return bundle.Rendered{}, err
	}
	rendered, err := bundle.Render(content, options)
	if err != nil && content.NeedsCertificates() && options.Certificates == bundle.NoCertificates {
		err = &NoIssuerError{Err: err}
	}
	return rendered, err
}
