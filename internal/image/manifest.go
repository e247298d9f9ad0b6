package image

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/opencontainers/go-digest"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/manifest"
	"go.podman.io/image/v5/types"
)

// rawManifest is a manifest or an index as the registry sent it, with its
// digest verified.
type rawManifest struct {
	data   []byte
	mime   string
	digest digest.Digest
}

// imageParts are the blobs of an image, bottom layer first.
type imageParts struct {
	config types.BlobInfo
	layers []types.BlobInfo

	// provenance says that a chart has a file of this kind beside it, which is left out.
	provenance bool
}

// isChart is what the image says of itself: the type of its configuration.
func (p imageParts) isChart() bool { return p.config.MediaType == chartConfigType }

// newRawManifest checks size and digest of a manifest. Without want the
// digest is that of the data.
func newRawManifest(data []byte, mime string, want digest.Digest, limit int64) (rawManifest, error) {
	algorithm := digest.Canonical
	if want != "" {
		algorithm = want.Algorithm()
	}
	got := algorithm.FromBytes(data)
	if want != "" && got != want {
		return rawManifest{}, &DigestError{Object: "manifest", Want: want, Got: got}
	}
	if int64(len(data)) > limit {
		return rawManifest{}, &LimitError{Bound: BoundManifestBytes, Limit: limit}
	}
	return rawManifest{data: data, mime: manifestType(data, mime), digest: got}, nil
}

// manifestType trusts the registry's word only where it is a known type:
// some registries send every manifest as plain JSON.
func manifestType(data []byte, mime string) string {
	switch mime {
	case imagespec.MediaTypeImageManifest, imagespec.MediaTypeImageIndex,
		manifest.DockerV2Schema2MediaType, manifest.DockerV2ListMediaType:
		return mime
	default:
		return manifest.GuessMIMEType(data)
	}
}

func (m rawManifest) isIndex() bool { return manifest.MIMETypeIsMultiImage(m.mime) }

// instance returns the digest of the image for the platform of sys.
func (m rawManifest) instance(sys *types.SystemContext) (digest.Digest, error) {
	list, err := manifest.ListFromBlob(m.data, m.mime)
	if err != nil {
		return "", &FormatError{Object: "image index", Err: err}
	}
	chosen, err := list.ChooseInstance(sys)
	if err != nil {
		return "", &FormatError{Object: "image index", Err: err}
	}
	if err := chosen.Validate(); err != nil {
		return "", &FormatError{Object: "image index", Err: err}
	}
	return chosen, nil
}

// bytes is the size of all layers as they come from the registry.
func (p imageParts) bytes() (total int64) {
	for _, layer := range p.layers {
		total += layer.Size
	}
	return total
}

// parts returns the blobs of an image manifest, whose number and declared
// sizes keep the limits.
func (m rawManifest) parts(limits Limits) (imageParts, error) {
	switch m.mime {
	case imagespec.MediaTypeImageManifest, manifest.DockerV2Schema2MediaType:
	default:
		return imageParts{}, &FormatError{Object: "manifest", Err: fmt.Errorf("unsupported type %q", m.mime)}
	}
	parsed, err := manifest.FromBlob(m.data, m.mime)
	if err != nil {
		return imageParts{}, &FormatError{Object: "manifest", Err: err}
	}
	parts := imageParts{config: parsed.ConfigInfo()}
	infos := parsed.LayerInfos()
	if len(infos) > limits.Layers {
		return imageParts{}, &LimitError{Bound: BoundLayers, Limit: int64(limits.Layers)}
	}
	types := layerTypes
	if parts.isChart() {
		types = chartLayerTypes
	}
	left := limits.CompressedBytes
	for _, info := range infos {
		if parts.isChart() && info.MediaType == chartProvenanceType {
			parts.provenance = true
			continue
		}
		if err := checkLayer(info.BlobInfo, types); err != nil {
			return imageParts{}, err
		}
		if info.Size > left {
			return imageParts{}, &LimitError{Bound: BoundCompressedBytes, Limit: limits.CompressedBytes, Entry: info.Digest.String()}
		}
		left -= info.Size
		parts.layers = append(parts.layers, info.BlobInfo)
	}
	if parts.isChart() && len(parts.layers) != 1 {
		return imageParts{}, &FormatError{Object: "chart", Err: fmt.Errorf("%d layers instead of one", len(parts.layers))}
	}
	return parts, nil
}

func checkLayer(info types.BlobInfo, layerTypes map[string]bool) error {
	if err := checkBlob(info); err != nil {
		return err
	}
	if !layerTypes[info.MediaType] {
		return &FormatError{Object: "layer", Err: fmt.Errorf("unsupported type %q", info.MediaType)}
	}
	return nil
}

func checkBlob(info types.BlobInfo) error {
	if err := info.Digest.Validate(); err != nil {
		return &FormatError{Object: "descriptor", Err: err}
	}
	if info.Size < 0 {
		return &FormatError{Object: "descriptor", Err: errors.New("negative size")}
	}
	return nil
}

// layerTypes are the media types of layers that are tar archives. The
// compression is taken from the data, as registries and tools confuse it.
var layerTypes = map[string]bool{
	imagespec.MediaTypeImageLayer:                     true,
	imagespec.MediaTypeImageLayerGzip:                 true,
	imagespec.MediaTypeImageLayerZstd:                 true,
	imagespec.MediaTypeImageLayerNonDistributable:     true, //nolint:staticcheck // deprecated, but still in registries
	imagespec.MediaTypeImageLayerNonDistributableGzip: true, //nolint:staticcheck // deprecated, but still in registries
	imagespec.MediaTypeImageLayerNonDistributableZstd: true, //nolint:staticcheck // deprecated, but still in registries
	manifest.DockerV2SchemaLayerMediaTypeUncompressed: true,
	manifest.DockerV2Schema2LayerMediaType:            true,
	manifest.DockerV2SchemaLayerMediaTypeZstd:         true,
	manifest.DockerV2Schema2ForeignLayerMediaType:     true,
	manifest.DockerV2Schema2ForeignLayerMediaTypeGzip: true,
}

// The media types of a Helm chart in a registry.
const (
	chartConfigType     = "application/vnd.cncf.helm.config.v1+json"
	chartProvenanceType = "application/vnd.cncf.helm.chart.provenance.v1.prov"
)

// chartLayerTypes are those of the archive of a chart, the second as Helm wrote it at first.
var chartLayerTypes = map[string]bool{
	"application/vnd.cncf.helm.chart.content.v1.tar+gzip": true,
	"application/tar+gzip":                                true,
}

// catalogDir returns the value of the catalog label in an image configuration.
func catalogDir(config []byte) (string, error) {
	var parsed struct {
		Config struct {
			Labels map[string]string `json:"Labels"`
		} `json:"config"`
	}
	if err := json.Unmarshal(config, &parsed); err != nil {
		return "", &FormatError{Object: "image configuration", Err: err}
	}
	value := parsed.Config.Labels[CatalogLabel]
	if value == "" {
		return "", &LabelError{Label: CatalogLabel}
	}
	return value, nil
}
