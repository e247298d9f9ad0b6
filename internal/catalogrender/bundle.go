package catalogrender

import (
	"encoding/json"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	"github.com/operator-framework/operator-registry/alpha/property"
	"github.com/operator-framework/operator-registry/pkg/image"
	"github.com/operator-framework/operator-registry/pkg/registry"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	reference "github.com/clusterextensions/operator-controller/internal/image"
)

func rank(p property.Property) int {
	if p.Type == property.TypeBundleObject || p.Type == property.TypeCSVMetadata {
		return 1
	}
	return 0
}

// Named is what a template for images knows of a bundle.
type Named struct{ Package, Name, Version string }

// bundleIn renders the bundle that a reference stands for. Image is where it was pulled from;
// empty for a folder.
func (r Renderer) bundleIn(files fs.FS, ref, image string) (*declcfg.DeclarativeConfig, error) {
	read, err := r.read(files, ref, image)
	if err != nil {
		return nil, err
	}
	if image == "" {
		if read.BundleImage, err = r.imageFor(ref, read.Name, func() (Named, error) { return namedOf(read) }); err != nil {
			return nil, err
		}
	}
	objects, properties, err := registry.ObjectsAndPropertiesFromBundle(read)
	if err != nil {
		return nil, fmt.Errorf("reading the properties of bundle %q: %w", read.Name, err)
	}
	images, err := imagesOf(read)
	if err != nil {
		return nil, fmt.Errorf("reading the images of bundle %q: %w", read.Name, err)
	}
	csv, err := csvOf(read)
	if err != nil {
		return nil, err
	}
	return &declcfg.DeclarativeConfig{Bundles: []declcfg.Bundle{{
		Schema: declcfg.SchemaBundle, Name: read.Name, Package: read.Package, Image: read.BundleImage,
		Properties: properties, RelatedImages: images, Objects: objects, CsvJSON: csv,
	}}}, nil
}

// read parses a bundle by the library, which wants a folder and has no bounds: it gets a copy of
// what is within those of bundles.
func (r Renderer) read(files fs.FS, ref, from string) (*registry.Bundle, error) {
	contents, leftOut, err := bundle.Contents(files)
	if err != nil {
		return nil, err
	}
	for _, one := range leftOut {
		r.Note(ref, "left out: "+one.String())
	}
	folder, err := os.MkdirTemp("", "operator-controller-bundle-")
	if err != nil {
		return nil, err
	}
	defer func() { _ = os.RemoveAll(folder) }()
	for name, content := range contents {
		path := filepath.Join(folder, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
			return nil, err
		}
		if err := os.WriteFile(path, content, 0o600); err != nil {
			return nil, err
		}
	}
	input, err := registry.NewImageInput(image.SimpleReference(from), folder)
	if err != nil {
		return nil, err
	}
	return input.Bundle, nil
}

// imageFor is the image of a bundle that a path on this machine leads to; empty where nothing
// tells it, which is noted.
func (r Renderer) imageFor(ref, bundle string, named func() (Named, error)) (string, error) {
	if r.ImageOf == nil {
		r.Note(ref, "the catalog names no image for it, because a folder does not tell it: --bundle-image does")
		return "", nil
	}
	known, err := named()
	var text strings.Builder
	if err == nil {
		err = r.ImageOf.Execute(&text, known)
	}
	if err == nil {
		err = reference.CheckReference(text.String())
	}
	if err != nil {
		return "", fmt.Errorf("naming the image of bundle %q: %w", bundle, err)
	}
	return text.String(), nil
}

// namedOf has the version of the first property with one, as it is for the catalog.
func namedOf(read *registry.Bundle) (Named, error) {
	version, err := read.Version()
	if err != nil {
		return Named{}, err
	}
	for _, stated := range read.Properties {
		var of property.Package
		if stated.Type == property.TypePackage && json.Unmarshal(stated.Value, &of) == nil {
			version = of.Version
			break
		}
	}
	return Named{Package: read.Package, Name: read.Name, Version: version}, nil
}

// csvOf is what migrations take the metadata from.
func csvOf(read *registry.Bundle) (string, error) {
	for _, object := range read.Objects {
		if object.GetKind() == "ClusterServiceVersion" {
			text, err := json.Marshal(object)
			return string(text), err
		}
	}
	return "", nil
}

// imagesOf are those that a bundle names as related and, where they are not among these, its own
// and those of its containers.
func imagesOf(read *registry.Bundle) ([]declcfg.RelatedImage, error) {
	csv, err := read.ClusterServiceVersion()
	if err != nil {
		return nil, err
	}
	var spec map[string]json.RawMessage // keys count as they are written
	if err := json.Unmarshal(csv.Spec, &spec); err != nil {
		return nil, err
	}
	var images []declcfg.RelatedImage
	if listed, ok := spec["relatedImages"]; ok {
		if err := json.Unmarshal(listed, &images); err != nil {
			return nil, err
		}
	}
	related := map[string]bool{}
	for _, one := range images {
		related[one.Image] = true
	}
	if own := read.BundleImage; own != "" && !related[own] {
		images = append(images, declcfg.RelatedImage{Image: own})
	}
	run, err := csv.GetOperatorImages()
	if err != nil {
		return nil, err
	}
	for one := range run {
		if !related[one] {
			images = append(images, declcfg.RelatedImage{Image: one})
		}
	}
	return images, nil
}
