package catalogrender

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
	"sort"
	"text/template"

	"github.com/operator-framework/operator-registry/alpha/action/migrations"
	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/image"
)

// Renderer renders what references stand for.
type Renderer struct {
	// Images says how images are pulled. Dir is not used.
	Images image.Config

	// ImageOf makes the image of a bundle in a folder, which does not tell it, from [Named];
	// nil for none.
	ImageOf *template.Template

	// LeftOut is told what the library leaves out of the bundle of a reference. It is
	// required.
	LeftOut func(ref, what string)

	// Migrations are applied to what was rendered; nil for none.
	Migrations *migrations.Migrations
}

// All renders folders and images, each of which is a catalog or a bundle, in their order. The
// error names the reference.
func (r Renderer) All(ctx context.Context, refs []string) (*declcfg.DeclarativeConfig, error) {
	all := &declcfg.DeclarativeConfig{}
	for _, ref := range refs {
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
		err = r.settle(rendered)
	}
	if err != nil {
		return nil, fmt.Errorf("rendering bundle %q: %w", ref, err)
	}
	return rendered, nil
}

func (r Renderer) one(ctx context.Context, ref string) (rendered *declcfg.DeclarativeConfig, err error) {
	info, err := os.Stat(ref)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		rendered, err = r.image(ctx, ref)
	case err != nil:
		return nil, err
	case !info.IsDir():
		return nil, errors.New("it is a file, and neither a folder nor an image")
	case isBundle(os.DirFS(ref)):
		rendered, err = r.bundleIn(os.DirFS(ref), ref, "")
	default:
		rendered, err = catalogIn(ctx, os.DirFS(ref))
	}
	if err != nil {
		return nil, err
	}
	return rendered, r.settle(rendered)
}

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
	if !isBundle(pulled.Files) {
		return nil, errors.New("it is neither a catalog nor a bundle: it has no label for the one, and no manifests and metadata for the other")
	}
	return r.bundleIn(pulled.Files, ref, ref)
}

// catalogIn loads a catalog by the library, which has no bounds and follows links, after it was
// found to be within the bounds of catalogs, and to have files alone.
func catalogIn(ctx context.Context, files fs.FS) (*declcfg.DeclarativeConfig, error) {
	for _, err := range (fbc.Folder{Root: files}).Objects(ctx) {
		if _, one := errors.AsType[*fbc.ObjectError](err); err != nil && !one {
			return nil, err
		}
		if ctx.Err() != nil {
			return nil, ctx.Err()
		}
	}
	return declcfg.LoadFS(ctx, files)
}

// settle brings what was rendered into the form that is printed.
func (r Renderer) settle(rendered *declcfg.DeclarativeConfig) error {
	for i := range rendered.Bundles {
		arrange(&rendered.Bundles[i])
	}
	if r.Migrations == nil {
		return nil
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
