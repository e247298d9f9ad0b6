package catalogrender

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/operator-framework/operator-registry/alpha/declcfg"
	olmproperty "github.com/operator-framework/operator-registry/alpha/property"
	"github.com/operator-framework/operator-registry/pkg/image"
	"github.com/operator-framework/operator-registry/pkg/registry"
)

type property = olmproperty.Property

func rank(p property) int {
	if p.Type == olmproperty.TypeBundleObject || p.Type == olmproperty.TypeCSVMetadata {
		return 1
	}
	return 0
}

// Named is what a template for images knows of a bundle.
type Named struct{ Package, Name, Version string }

// bundleIn renders the bundle in a folder, which was pulled from an image; empty for none.
func (r Renderer) bundleIn(folder, from string) (*declcfg.DeclarativeConfig, error) {
	input, err := registry.NewImageInput(image.SimpleReference(from), folder)
	if err != nil {
		return nil, err
	}
	read := input.Bundle
	if from == "" && r.ImageOf != nil {
		if read.BundleImage, err = r.imageOf(read); err != nil {
			return nil, fmt.Errorf("naming the image of bundle %q: %w", read.Name, err)
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

func (r Renderer) imageOf(read *registry.Bundle) (string, error) {
	version, err := read.Version()
	if err != nil {
		return "", err
	}
	var text strings.Builder
	err = r.ImageOf.Execute(&text, Named{Package: read.Package, Name: read.Name, Version: version})
	return text.String(), err
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

// imagesOf are those that a bundle names as related, its own, and those of its containers, each
// once.
func imagesOf(read *registry.Bundle) ([]declcfg.RelatedImage, error) {
	csv, err := read.ClusterServiceVersion()
	if err != nil {
		return nil, err
	}
	var spec struct {
		RelatedImages []declcfg.RelatedImage `json:"relatedImages"`
	}
	if err := json.Unmarshal(csv.Spec, &spec); err != nil {
		return nil, err
	}
	images, known := spec.RelatedImages, map[string]bool{"": true}
	for _, one := range images {
		known[one.Image] = true
	}
	run, err := csv.GetOperatorImages()
	if err != nil {
		return nil, err
	}
	more := []string{read.BundleImage}
	for one := range run {
		more = append(more, one)
	}
	for _, one := range more {
		if !known[one] {
			known[one] = true
			images = append(images, declcfg.RelatedImage{Image: one})
		}
	}
	return images, nil
}
