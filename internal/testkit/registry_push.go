package testkit

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
)

// Layer is the blob of a layer exactly as it is to be stored. An empty media
// type means a gzip-compressed tar archive.
type Layer struct {
	Blob      []byte
	MediaType string
}

// Push stores an image of one layer with the given files under
// repository:tag, or repository alone, and returns its digest. Equal files and
// labels give equal digests.
func (r *Registry) Push(ctx context.Context, target string, files fs.FS, labels map[string]string) (string, error) {
	archive, err := TarFS(files)
	if err != nil {
		return "", fmt.Errorf("pushing %s: %w", target, err)
	}
	return r.PushLayers(ctx, target, labels, Layer{Blob: Gzip(archive)})
}

// PushLayers stores an image of the given layers, bottom first.
func (r *Registry) PushLayers(ctx context.Context, target string, labels map[string]string, layers ...Layer) (string, error) {
	config, err := json.Marshal(imagespec.Image{
		Platform: imagespec.Platform{OS: "linux", Architecture: "amd64"},
		Config:   imagespec.ImageConfig{Labels: labels},
		RootFS:   imagespec.RootFS{Type: "layers", DiffIDs: []digest.Digest{}},
	})
	if err != nil {
		return "", fmt.Errorf("pushing %s: %w", target, err)
	}
	return r.pushParts(ctx, target, Layer{Blob: config, MediaType: imagespec.MediaTypeImageConfig}, layers)
}

// Media types of a Helm chart.
const (
	ChartConfig     = "application/vnd.cncf.helm.config.v1+json"
	ChartContent    = "application/vnd.cncf.helm.chart.content.v1.tar+gzip"
	ChartProvenance = "application/vnd.cncf.helm.chart.provenance.v1.prov"
)

// PushChart stores a Helm chart, whose files are below a folder of the given name in
// its archive, as "helm push" does it. Layers come after that of the archive.
func (r *Registry) PushChart(ctx context.Context, target, folder string, files fs.FS, layers ...Layer) (string, error) {
	archive, err := tarFS(files, folder+"/")
	if err != nil {
		return "", fmt.Errorf("pushing %s: %w", target, err)
	}
	return r.PushChartLayers(ctx, target, append([]Layer{{Blob: Gzip(archive), MediaType: ChartContent}}, layers...)...)
}

// PushChartLayers stores an image whose configuration is that of a Helm chart.
func (r *Registry) PushChartLayers(ctx context.Context, target string, layers ...Layer) (string, error) {
	return r.pushParts(ctx, target, Layer{Blob: []byte("{}"), MediaType: ChartConfig}, layers)
}

func (r *Registry) pushParts(ctx context.Context, target string, config Layer, layers []Layer) (_ string, err error) {
	manifest := imagespec.Manifest{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: imagespec.MediaTypeImageManifest,
		Layers:    []imagespec.Descriptor{},
	}
	if manifest.Config, err = r.PushBlob(ctx, target, config.MediaType, config.Blob); err != nil {
		return "", err
	}
	for _, layer := range layers {
		mediaType := layer.MediaType
		if mediaType == "" {
			mediaType = imagespec.MediaTypeImageLayerGzip
		}
		desc, err := r.PushBlob(ctx, target, mediaType, layer.Blob)
		if err != nil {
			return "", err
		}
		manifest.Layers = append(manifest.Layers, desc)
	}
	return r.PushManifest(ctx, target, imagespec.MediaTypeImageManifest, manifest)
}

// PushIndex stores an index of images of the same repository that were pushed
// before, by platform in the form os/architecture, in the order given.
func (r *Registry) PushIndex(ctx context.Context, target string, images ...IndexEntry) (string, error) {
	index := imagespec.Index{
		Versioned: specs.Versioned{SchemaVersion: 2},
		MediaType: imagespec.MediaTypeImageIndex,
		Manifests: []imagespec.Descriptor{},
	}
	for _, image := range images {
		os, architecture, _ := strings.Cut(image.Platform, "/")
		index.Manifests = append(index.Manifests, imagespec.Descriptor{
			MediaType: imagespec.MediaTypeImageManifest,
			Digest:    digest.Digest(image.Digest),
			Size:      image.Size,
			Platform:  &imagespec.Platform{OS: os, Architecture: architecture},
		})
	}
	return r.PushManifest(ctx, target, imagespec.MediaTypeImageIndex, index)
}

// IndexEntry is one image of an index.
type IndexEntry struct {
	Platform string // os/architecture
	Digest   string
	Size     int64
}

// PushBlob stores a blob and returns its descriptor.
func (r *Registry) PushBlob(ctx context.Context, target, mediaType string, blob []byte) (imagespec.Descriptor, error) {
	repository, _ := splitTarget(target)
	d := digest.FromBytes(blob)
	path := fmt.Sprintf("/v2/%s/blobs/uploads/?digest=%s", repository, url.QueryEscape(d.String()))
	if err := r.put(ctx, http.MethodPost, path, "application/octet-stream", blob); err != nil {
		return imagespec.Descriptor{}, err
	}
	return imagespec.Descriptor{MediaType: mediaType, Digest: d, Size: int64(len(blob))}, nil
}

// PushManifest stores a manifest of any content, which may be malformed: bytes
// are stored as they are, anything else as JSON. It returns the digest.
func (r *Registry) PushManifest(ctx context.Context, target, mediaType string, manifest any) (string, error) {
	data, ok := manifest.([]byte)
	if !ok {
		var err error
		if data, err = json.Marshal(manifest); err != nil {
			return "", fmt.Errorf("pushing %s: %w", target, err)
		}
	}
	d := digest.FromBytes(data).String()
	repository, tag := splitTarget(target)
	if tag == "" {
		tag = d
	}
	return d, r.put(ctx, http.MethodPut, "/v2/"+repository+"/manifests/"+tag, mediaType, data)
}

// put hands a request to the registry without the network.
func (r *Registry) put(ctx context.Context, method, path, contentType string, body []byte) error {
	req := httptest.NewRequestWithContext(ctx, method, path, bytes.NewReader(body))
	req.Header.Set("Content-Type", contentType)
	recorder := httptest.NewRecorder()
	r.store.ServeHTTP(recorder, req)
	if recorder.Code != http.StatusCreated {
		return fmt.Errorf("pushing to %s: status %d: %s", path, recorder.Code, recorder.Body)
	}
	return nil
}

// splitTarget splits repository:tag. A leading host is not part of it.
func splitTarget(target string) (repository, tag string) {
	repository, tag, _ = strings.Cut(target, ":")
	return repository, tag
}
