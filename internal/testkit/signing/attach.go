package signing

import (
	"context"
	"encoding/json"
	"strings"

	"github.com/opencontainers/go-digest"
	"github.com/opencontainers/image-spec/specs-go"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// Attach puts signatures and attestations of an image where cosign puts them: before version 3
// under tags, and since then as referrers. A registry without an API for these gets an index under
// a tag as well. Each call takes the place of what was there under tags before.
func Attach(ctx context.Context, to *testkit.Registry, repository, image string, all ...imagepolicy.Evidence) error {
	tag := strings.ReplaceAll(image, ":", "-")
	old := map[string][]imagespec.Descriptor{}
	index := imagespec.Index{Versioned: specs.Versioned{SchemaVersion: 2}, MediaType: imagespec.MediaTypeImageIndex}
	for _, evidence := range all {
		layer, err := to.PushBlob(ctx, repository, evidence.MediaType, evidence.Data)
		if err != nil {
			return err
		}
		layer.Annotations = evidence.Annotations
		switch evidence.MediaType {
		case imagepolicy.MediaTypeSimpleSigning:
			old[".sig"] = append(old[".sig"], layer)
		case imagepolicy.MediaTypeEnvelope:
			old[".att"] = append(old[".att"], layer)
		default:
			referrer, err := attachBundle(ctx, to, repository, image, layer, evidence)
			if err != nil {
				return err
			}
			index.Manifests = append(index.Manifests, referrer)
		}
	}
	for suffix, layers := range old {
		if _, _, err := pushManifest(ctx, to, repository+":"+tag+suffix, imagespec.Manifest{Layers: layers}); err != nil {
			return err
		}
	}
	if len(index.Manifests) == 0 {
		return nil
	}
	_, err := to.PushManifest(ctx, repository+":"+tag, imagespec.MediaTypeImageIndex, index)
	return err
}

func attachBundle(
	ctx context.Context, to *testkit.Registry, repository, image string, layer imagespec.Descriptor, evidence imagepolicy.Evidence,
) (imagespec.Descriptor, error) {
	annotations := map[string]string{"dev.sigstore.bundle.content": "dsse-envelope", "dev.sigstore.bundle.predicateType": predicateOf(evidence)}
	digested, size, err := pushManifest(ctx, to, repository, imagespec.Manifest{
		ArtifactType: evidence.MediaType,
		Layers:       []imagespec.Descriptor{layer},
		Annotations:  annotations,
		Subject:      &imagespec.Descriptor{MediaType: imagespec.MediaTypeImageManifest, Digest: digest.Digest(image), Size: 1},
	})
	return imagespec.Descriptor{
		MediaType: imagespec.MediaTypeImageManifest, Digest: digest.Digest(digested), Size: size,
		ArtifactType: evidence.MediaType, Annotations: annotations,
	}, err
}

func predicateOf(evidence imagepolicy.Evidence) string {
	var bundle struct {
		Envelope struct {
			Payload []byte `json:"payload"`
		} `json:"dsseEnvelope"`
	}
	var statement struct {
		PredicateType string `json:"predicateType"`
	}
	if json.Unmarshal(evidence.Data, &bundle) != nil || json.Unmarshal(bundle.Envelope.Payload, &statement) != nil {
		return ""
	}
	return statement.PredicateType
}

func pushManifest(ctx context.Context, to *testkit.Registry, target string, manifest imagespec.Manifest) (string, int64, error) {
	config, err := to.PushBlob(ctx, target, imagespec.MediaTypeImageConfig, []byte("{}"))
	if err != nil {
		return "", 0, err
	}
	manifest.Versioned, manifest.MediaType, manifest.Config = specs.Versioned{SchemaVersion: 2}, imagespec.MediaTypeImageManifest, config
	data, err := json.Marshal(manifest)
	if err != nil {
		return "", 0, err
	}
	digested, err := to.PushManifest(ctx, target, imagespec.MediaTypeImageManifest, data)
	return digested, int64(len(data)), err
}
