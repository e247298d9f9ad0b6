package bundlepush

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"
	"slices"
	"strings"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// The media types of a chart, as "helm push" has them.
const (
	chartConfig     types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent    types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	chartProvenance types.MediaType = "application/vnd.cncf.helm.chart.provenance.v1.prov"
)

// chartImage is the image of a chart as "helm push" makes it: Chart.yaml is the configuration. The
// archive is a layer, and so is the provenance file if there is one.
type chartImage struct {
	config, manifest []byte
	layers           map[v1.Hash]v1.Layer
}

var _ partial.CompressedImageCore = chartImage{}

func (i chartImage) RawConfigFile() ([]byte, error) { return i.config, nil }

func (i chartImage) RawManifest() ([]byte, error) { return i.manifest, nil }

func (chartImage) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// LayerByDigest returns a layer of the manifest.
func (i chartImage) LayerByDigest(digest v1.Hash) (partial.CompressedLayer, error) {
	layer, isKnown := i.layers[digest]
	if !isKnown {
		return nil, fmt.Errorf("the chart has no layer %s", digest)
	}
	return layer, nil
}

// PackChart returns the archive of a chart that can be read: the files below chart/, in a folder
// with the name of the chart. The same files make the same archive.
func PackChart(files fs.FS) ([]byte, error) {
	content, err := bundle.Parse(files)
	if err != nil {
		return nil, err
	}
	archive, err := archiveOf(content.Chart.Name, content.Chart.Files)
	if err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	zipped, err := gzipped(archive)
	if err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	return zipped, nil
}

// chartImageOf returns the image of a chart. It fails if the chart is invalid.
func chartImageOf(content Content) (v1.Image, error) {
	parsed, err := bundle.Parse(content.Files)
	if err != nil {
		return nil, err
	}
	archive := content.Archive
	if archive == nil {
		if archive, err = PackChart(content.Files); err != nil {
			return nil, err
		}
	}
	layers := []v1.Layer{static.NewLayer(archive, chartContent)}
	if content.Provenance != nil {
		layers = append(layers, static.NewLayer(content.Provenance, chartProvenance))
	}
	config, err := yaml.YAMLToJSON(parsed.Chart.Files["Chart.yaml"])
	if err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	image, err := newChartImage(config, layers)
	if err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	return partial.CompressedToImage(image)
}

func newChartImage(config []byte, layers []v1.Layer) (chartImage, error) {
	image := chartImage{config: config, layers: map[v1.Hash]v1.Layer{}}
	manifest := v1.Manifest{SchemaVersion: 2, MediaType: types.OCIManifestSchema1}
	descriptor, err := partial.Descriptor(static.NewLayer(config, chartConfig))
	if err != nil {
		return chartImage{}, err
	}
	manifest.Config = *descriptor
	for _, layer := range layers {
		descriptor, err := partial.Descriptor(layer)
		if err != nil {
			return chartImage{}, err
		}
		manifest.Layers = append(manifest.Layers, *descriptor)
		image.layers[descriptor.Digest] = layer
	}
	// Helm sorts layers by their digests, too.
	slices.SortFunc(manifest.Layers, func(a, b v1.Descriptor) int { return strings.Compare(a.Digest.String(), b.Digest.String()) })
	image.manifest, err = json.Marshal(manifest)
	return image, err
}

func gzipped(content []byte) ([]byte, error) {
	var zipped bytes.Buffer
	writer := gzip.NewWriter(&zipped)
	if _, err := writer.Write(content); err != nil {
		return nil, err
	}
	if err := writer.Close(); err != nil {
		return nil, err
	}
	return zipped.Bytes(), nil
}
