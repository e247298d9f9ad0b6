package bundlepush

import (
	"bytes"
	"compress/gzip"
	"encoding/json"
	"fmt"
	"io/fs"

	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/partial"
	"github.com/google/go-containerregistry/pkg/v1/static"
	"github.com/google/go-containerregistry/pkg/v1/types"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
)

// The media types of a chart, as "helm push" has them.
const (
	chartConfig  types.MediaType = "application/vnd.cncf.helm.config.v1+json"
	chartContent types.MediaType = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
)

// chartImage is what "helm push" makes of a chart: Chart.yaml as the configuration, and its
// archive as the only layer.
type chartImage struct {
	config, manifest []byte
	layer            v1.Layer
}

var _ partial.CompressedImageCore = chartImage{}

func (i chartImage) RawConfigFile() ([]byte, error) { return i.config, nil }

func (i chartImage) RawManifest() ([]byte, error) { return i.manifest, nil }

func (chartImage) MediaType() (types.MediaType, error) { return types.OCIManifestSchema1, nil }

// LayerByDigest is asked for the only one.
func (i chartImage) LayerByDigest(v1.Hash) (partial.CompressedLayer, error) { return i.layer, nil }

// chartImageOf wants a chart that can be read: its archive has a folder of its name.
func chartImageOf(files fs.FS) (v1.Image, error) {
	content, err := bundle.Parse(files)
	if err != nil {
		return nil, err
	}
	image := chartImage{}
	if image.config, err = yaml.YAMLToJSON(content.Chart.Files["Chart.yaml"]); err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	archive, err := archiveOf(content.Chart.Name, content.Chart.Files)
	if err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	zipped, err := gzipped(archive)
	if err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	image.layer = static.NewLayer(zipped, chartContent)
	config, err := partial.Descriptor(static.NewLayer(image.config, chartConfig))
	if err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	layer, err := partial.Descriptor(image.layer)
	if err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	if image.manifest, err = json.Marshal(v1.Manifest{
		SchemaVersion: 2, MediaType: types.OCIManifestSchema1, Config: *config, Layers: []v1.Descriptor{*layer},
	}); err != nil {
		return nil, fmt.Errorf("packing the chart: %w", err)
	}
	return partial.CompressedToImage(image)
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
