package catalogrender

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"slices"
	"sort"
	"strings"
	"text/template"

	"github.com/operator-framework/operator-registry/alpha/action/migrations"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlesource"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
	"github.com/clusterextensions/operator-controller/internal/image"
)

// maxNamed bounds the names of folders in an error, in bytes.
const maxNamed = 500

// Renderer renders what references stand for.
type Renderer struct {
	// Images says how images are pulled. Dir is not used.
	Images image.Config

	// ImageOf makes the image of a bundle in a folder, which does not tell it, from [Named];
	// nil for none.
	ImageOf *template.Template

	// ChartPackage is the package of charts; empty for the name of each.
	ChartPackage string

	// Note is told what whoever reads the catalog would not guess of a reference, such as
	// what the library leaves out of a bundle. It is required.
	Note func(ref, what string)

	// Migrations are applied to what was rendered; nil for none.
	Migrations *migrations.Migrations
}

// All renders folders and images, each of which is a catalog or a bundle, in their order. The
// error names the reference.
func (r Renderer) All(ctx context.Context, refs []string) (*declcfg.DeclarativeConfig, error) {
	all := &declcfg.DeclarativeConfig{}
	for _, ref := range refs {
		if err := ctx.Err(); err != nil { // a folder is read without looking at it
			return nil, err
		}
		one, err := r.one(ctx, ref)
		if err != nil {
			return nil, fmt.Errorf("rendering %q: %w", ref, err)
		}
		all.Merge(one)
	}
	return all, nil
}

// bundle renders the image of a bundle, and nothing else. The error names the image.
func (r Renderer) bundle(ctx context.Context, ref string) (*declcfg.DeclarativeConfig, error) {
	rendered, err := r.bundleImage(ctx, ref)
	if err == nil {
		err = r.settle(ref, rendered)
	}
	if err != nil {
		return nil, fmt.Errorf("rendering bundle %q: %w", ref, err)
	}
	return rendered, nil
}

func (r Renderer) one(ctx context.Context, ref string) (*declcfg.DeclarativeConfig, error) {
	render := r.local
	if _, err := os.Stat(ref); errors.Is(err, fs.ErrNotExist) {
		render = r.image
	}
	rendered, err := render(ctx, ref)
	if err != nil {
		return nil, err
	}
	return rendered, r.settle(ref, rendered)
}

// local renders what is on this machine.
func (r Renderer) local(ctx context.Context, path string) (*declcfg.DeclarativeConfig, error) {
	files, err := bundlesource.Local(path)
	if info, statErr := os.Stat(path); err != nil && statErr == nil && !info.IsDir() {
		return nil, fmt.Errorf("%w; of a template, kubectl extension catalog template makes a catalog", err)
	}
	switch {
	case err != nil:
		return nil, err
	case bundle.IsChart(files):
		return r.chartIn(files, path, "")
	case isBundle(files):
		return r.bundleIn(files, path, "")
	}
	rendered, err := catalogIn(ctx, files)
	if err != nil {
		return nil, neither(path, err)
	}
	return rendered, nil
}

// neither says of a folder that is no bundle why it is no catalog either, and where bundles are
// if these may be meant.
func neither(folder string, err error) error {
	if _, manifest := errors.AsType[*noCatalogError](err); !manifest {
		return err
	}
	if parent := filepath.Dir(filepath.Clean(folder)); isBundle(os.DirFS(parent)) {
		return fmt.Errorf("%w; there is a bundle in %s", err, parent)
	}
	below, readErr := os.ReadDir(folder)
	if readErr != nil {
		return err
	}
	var bundles []string
	for _, one := range below {
		if path := filepath.Join(folder, one.Name()); one.IsDir() && isBundle(os.DirFS(path)) {
			bundles = append(bundles, path)
		}
	}
	if len(bundles) == 0 {
		return err
	}
	return fmt.Errorf("%w; there are bundles in %s", err, excerpt.Of(bundles, maxNamed))
}

// noCatalogError says that a folder has what no catalog has.
type noCatalogError struct{ err error }

func (e *noCatalogError) Error() string {
	return "it is neither a bundle, which has the folders manifests and metadata, nor a catalog: " + e.err.Error()
}

func (e *noCatalogError) Unwrap() error { return e.err }

// isBundle says that a folder has what a bundle has.
func isBundle(folder fs.FS) bool {
	for _, part := range []string{"manifests", "metadata"} {
		if info, err := fs.Stat(folder, part); err != nil || !info.IsDir() {
			return false
		}
	}
	return true
}

// image pulls a catalog or, if the image has none, a bundle.
func (r Renderer) image(ctx context.Context, ref string) (*declcfg.DeclarativeConfig, error) {
	if err := image.CheckReference(ref); err != nil {
		if strings.HasPrefix(ref, ".") || filepath.IsAbs(ref) {
			return nil, errors.New("there is no such file or folder")
		}
		return nil, fmt.Errorf("it is neither a folder nor an image: %w", err)
	}
	pulled, err := image.Once(ctx, r.Images, image.Request{Ref: ref, Select: image.CatalogContent})
	if lacks, ok := errors.AsType[*image.LabelError](err); ok && lacks.Value == "" {
		return r.bundleImage(ctx, ref)
	}
	if err != nil {
		return nil, err
	}
	defer pulled.Close()
	return catalogIn(ctx, pulled.Files)
}

func (r Renderer) bundleImage(ctx context.Context, ref string) (*declcfg.DeclarativeConfig, error) {
	pulled, err := image.Once(ctx, r.Images, image.Request{Ref: ref, Select: image.BundleContent})
	if err != nil {
		return nil, err
	}
	defer pulled.Close()
	if bundle.IsChart(pulled.Files) {
		return r.chartIn(pulled.Files, ref, ref)
	}
	if !isBundle(pulled.Files) {
		return nil, errors.New("it is neither a catalog nor a bundle: it has no label for the one, and no manifests and metadata for the other")
	}
	return r.bundleIn(pulled.Files, ref, ref)
}

// catalogIn loads a catalog by the library, which has no bounds and follows links, after it was
// found to be within the bounds of catalogs, and to have files alone.
func catalogIn(ctx context.Context, files fs.FS) (*declcfg.DeclarativeConfig, error) {
	var wrong error // with the first object that is none of a catalog; the library may take it
	for found, err := range (fbc.Folder{Root: files}).Objects(ctx) {
		one, ofObject := errors.AsType[*fbc.ObjectError](err)
		switch {
		case err != nil && !ofObject:
			return nil, err
		case ctx.Err() != nil:
			return nil, ctx.Err()
		case wrong != nil:
		case ofObject:
			wrong = fmt.Errorf("%s: %w", found.Path, one)
		case found.Schema == "":
			wrong = fmt.Errorf("%s: object %d has no schema", found.Path, found.Position)
		}
	}
	loaded, err := declcfg.LoadFS(ctx, files)
	if err != nil && wrong != nil && ctx.Err() == nil {
		return nil, &noCatalogError{wrong} // the error of the library has the whole object
	}
	return loaded, err
}

// settle brings what was rendered of a reference into the form that is printed.
func (r Renderer) settle(ref string, rendered *declcfg.DeclarativeConfig) error {
	whole := 0
	for i := range rendered.Bundles {
		arrange(&rendered.Bundles[i])
		if rendered.Bundles[i].Image == "" && rendered.Bundles[i].CsvJSON != "" {
			whole++
		}
	}
	if r.Migrations == nil {
		return nil
	}
	if whole > 0 && len(r.Migrations.Migrations) > 0 {
		r.Note(ref, fmt.Sprintf("bundles that stay as they are, because only those with an image are migrated: %d", whole))
	}
	return r.Migrations.Migrate(rendered)
}

// arrange has the properties with whole objects after all others, and images by name.
func arrange(bundle *declcfg.Bundle) {
	slices.SortStableFunc(bundle.Properties, func(a, b property.Property) int { return rank(a) - rank(b) })
	images := bundle.RelatedImages
	// As opm does it: what it makes of several names of one image depends on how it sorts.
	sort.Slice(images, func(i, j int) bool { return images[i].Image < images[j].Image })
}
