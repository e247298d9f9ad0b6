package image

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync/atomic"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	ggcrv1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/opencontainers/go-digest"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"
	"go.podman.io/image/v5/docker/reference"
	"go.podman.io/image/v5/pkg/docker/config"

	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/referrers"
	"github.com/clusterextensions/operator-controller/internal/registrytls"
)

// Bounds of what is read of signatures and attestations: of one, and of all that one registry
// has of an image, in bytes and in number. What is beyond the first three is not looked at: a
// referrer need not be a signature, and takes a request all the same.
const (
	maxEvidence         = 64
	maxReferrers        = 128
	maxEvidenceBytes    = 4 << 20
	maxAllEvidenceBytes = 8 << 20
)

// Annotations by which attestations can be told apart without being read.
const (
	annotationPredicate       = "predicateType"                     // of a layer, before cosign 3
	annotationBundlePredicate = "dev.sigstore.bundle.predicateType" // of a referrer
)

// errTooMuchEvidence ends the reading of signatures.
var errTooMuchEvidence = fmt.Errorf("its signatures have more than %d bytes", maxAllEvidenceBytes)

// evidence reads what registries have of signatures and attestations of an image. It comes
// by way of an image source, and goes to the same registries: the mirrors, then the registry of
// the reference.
type evidence struct {
	source *source
	rule   imagepolicy.Rule
	image  imagepolicy.Subject
}

// judge says what the policies make of an image, and from what. Mirrors are asked in their order
// until one has what all policies accept. The error is a *RegistryError: as long as one of those
// who may have the signature that is missing cannot be asked, nobody can say that there is none.
func (e evidence) judge(ctx context.Context) (verdict imagepolicy.Verdict, all []imagepolicy.Evidence, err error) {
	verdict = e.rule.Judge(ctx, e.image, nil)
	var failed error
	var without []string
	for _, at := range e.source.guard.endpoints {
		if at.blocked {
			continue
		}
		found, err := e.at(ctx, at)
		if err != nil {
			failed = cmp.Or(failed, err)
		} else {
			without = append(without, strconv.Quote(at.host))
		}
		if len(found) == 0 {
			continue
		}
		all = append(all, found...)
		if verdict = e.rule.Judge(ctx, e.image, all); len(verdict.Refusals) == 0 {
			return verdict, all, nil
		}
		if ctx.Err() != nil {
			return verdict, all, registryError(ctx, "verifying signatures", ctx.Err())
		}
	}
	if failed == nil {
		return verdict, all, nil
	}
	op := "getting signatures"
	if len(without) > 0 {
		// In a cluster without network, that is all there is to be known.
		op += ", of which there is none that is accepted in " + strings.Join(without, " and ")
	}
	return verdict, all, registryError(ctx, op, failed)
}

// at reads what one registry has. An error comes together with what there was before it.
func (e evidence) at(ctx context.Context, where endpoint) ([]imagepolicy.Evidence, error) {
	client, err := e.client(ctx, where)
	if err != nil {
		return nil, err
	}
	var all []imagepolicy.Evidence
	for _, subject := range e.image {
		tag := strings.ReplaceAll(subject.String(), ":", "-")
		suffixes := []string{".sig"}
		if e.rule.WantsAttestations() {
			suffixes = append(suffixes, ".att")
		}
		for _, suffix := range suffixes {
			found, err := client.layers(client.repository.Tag(tag+suffix), maxEvidence-len(all))
			if all = append(all, found...); err != nil {
				return all, err
			}
		}
		found, err := client.referrers(subject, maxEvidence-len(all))
		if all = append(all, found...); err != nil {
			return all, err
		}
	}
	return all, nil
}

// evidenceClient asks one repository of one registry.
type evidenceClient struct {
	repository name.Repository
	options    []remote.Option
	wants      func(predicateType string) bool
}

func (e evidence) client(ctx context.Context, where endpoint) (*evidenceClient, error) {
	var options []name.Option
	if where.insecure {
		options = append(options, name.Insecure)
	}
	// The library would ask another host for what is at docker.io.
	repository, err := name.NewRepository(where.host+"/"+reference.Path(where.ref), options...)
	if err != nil {
		return nil, err
	}
	own, err := config.GetCredentialsForRef(e.source.sys, where.ref)
	if err != nil {
		return nil, fmt.Errorf("reading the credentials for %q: %w", where.ref, err)
	}
	through, err := e.transport(where) //nolint:contextcheck // the guard has that of the pull
	if err != nil {
		return nil, err
	}
	puller, err := remote.NewPuller(
		remote.WithContext(ctx),
		remote.WithAuth(authn.FromConfig(authn.AuthConfig{Username: own.Username, Password: own.Password, IdentityToken: own.IdentityToken})),
		remote.WithTransport(referrers.Whole(&boundedTransport{next: e.source.guard.realms.Guard(where.host, through)})),
		remote.WithUserAgent(userAgent),
		remote.WithRetryBackoff(remote.Backoff{Steps: 1}),
	)
	if err != nil {
		return nil, err
	}
	return &evidenceClient{
		repository: repository,
		options:    []remote.Option{remote.WithContext(ctx), remote.Reuse(puller)},
		wants: func(predicateType string) bool {
			return predicateType == "" || predicateType == imagepolicy.PredicateSignature || e.rule.WantsAttestation(predicateType)
		},
	}, nil
}

// transport trusts whom the image itself is read from, and follows the same leads.
func (e evidence) transport(where endpoint) (http.RoundTripper, error) {
	trusted, err := registrytls.Config(e.source.sys.DockerCertPath, where.host, where.insecure)
	if err != nil {
		return nil, err
	}
	guarded := http.DefaultTransport.(*http.Transport).Clone() //nolint:forcetypeassert,errcheck // it is one, and no library here replaces it
	guarded.TLSClientConfig, guarded.DisableKeepAlives = trusted, true
	guarded.Proxy = func(request *http.Request) (*url.URL, error) {
		return e.source.guard.admit(request.URL)
	}
	return guarded, nil
}

// layers reads signatures of cosign before version 3, which are the layers of an image.
func (c *evidenceClient) layers(tag name.Tag, most int) ([]imagepolicy.Evidence, error) {
	found, err := c.image(tag)
	if err != nil || found == nil {
		return nil, err
	}
	return c.read(found, tag.String(), most)
}

// image reads a manifest. It is nil for one that is missing, and for an index, which would be
// followed from one to the next: no signature is one.
func (c *evidenceClient) image(ref name.Reference) (ggcrv1.Image, error) {
	found, err := remote.Get(ref, c.options...)
	if err != nil || !found.MediaType.IsImage() {
		return nil, unlessMissing(err)
	}
	return found.Image()
}

// referrers reads what refers to an image: by the API for that, or by an index under a tag.
func (c *evidenceClient) referrers(subject digest.Digest, most int) ([]imagepolicy.Evidence, error) {
	index, err := remote.Referrers(c.repository.Digest(subject.String()), c.options...)
	if err != nil {
		return nil, unlessMissing(err)
	}
	manifest, err := index.IndexManifest()
	if err != nil {
		return nil, fmt.Errorf("reading what refers to %s: %w", subject, err)
	}
	var all []imagepolicy.Evidence
	looks := 0
	for _, referrer := range manifest.Manifests {
		if len(all) >= most || looks >= maxReferrers {
			break
		}
		if !mayBeSignature(referrer.ArtifactType) || !c.wants(referrer.Annotations[annotationBundlePredicate]) {
			continue
		}
		looks++
		place := c.repository.Digest(referrer.Digest.String())
		found, err := c.image(place)
		if err != nil {
			return all, err
		}
		if found == nil {
			continue
		}
		read, err := c.read(found, place.String(), most-len(all))
		if all = append(all, read...); err != nil {
			return all, err
		}
	}
	return all, nil
}

// mayBeSignature says so of what a registry says of a referrer. Some know the type of its
// configuration only, which is empty.
func mayBeSignature(artifactType string) bool {
	switch artifactType {
	case "", imagespec.MediaTypeEmptyJSON, imagespec.MediaTypeImageConfig:
		return true
	default:
		return strings.HasPrefix(artifactType, imagepolicy.MediaTypeBundle)
	}
}

// read reads the layers that are signatures or attestations. Those that are too large are none.
func (c *evidenceClient) read(from ggcrv1.Image, place string, most int) ([]imagepolicy.Evidence, error) {
	manifest, err := from.Manifest()
	if err != nil {
		return nil, fmt.Errorf("reading a signature: %w", err)
	}
	var all []imagepolicy.Evidence
	for _, layer := range manifest.Layers {
		mediaType := string(layer.MediaType)
		isEvidence := mediaType == imagepolicy.MediaTypeSimpleSigning || mediaType == imagepolicy.MediaTypeEnvelope ||
			strings.HasPrefix(mediaType, imagepolicy.MediaTypeBundle)
		if len(all) >= most || !isEvidence || layer.Size > maxEvidenceBytes || !c.wants(layer.Annotations[annotationPredicate]) {
			continue
		}
		data, err := c.blob(layer.Digest)
		if err != nil {
			return all, err
		}
		all = append(all, imagepolicy.Evidence{MediaType: mediaType, Data: data, Annotations: layer.Annotations, Place: place})
	}
	return all, nil
}

// blob reads a layer; its digest is verified on the way. The URLs of its descriptor, which come
// from whoever has put it there, are not asked.
func (c *evidenceClient) blob(of ggcrv1.Hash) ([]byte, error) {
	layer, err := remote.Layer(c.repository.Digest(of.String()), c.options...)
	if err != nil {
		return nil, fmt.Errorf("reading a signature: %w", err)
	}
	blob, err := layer.Compressed()
	if err != nil {
		return nil, fmt.Errorf("reading a signature: %w", err)
	}
	defer blob.Close()
	data, err := io.ReadAll(io.LimitReader(blob, maxEvidenceBytes+1))
	if err != nil {
		return nil, fmt.Errorf("reading a signature: %w", err)
	}
	return data, nil
}

// unlessMissing is nil for the error of a registry that says that it does not have something.
func unlessMissing(err error) error {
	var answered *transport.Error
	if errors.As(err, &answered) && answered.StatusCode == http.StatusNotFound {
		return nil
	}
	return err
}

// boundedTransport bounds the bytes of all answers together.
type boundedTransport struct {
	next http.RoundTripper
	read atomic.Int64
}

// RoundTrip sends a request.
func (t *boundedTransport) RoundTrip(request *http.Request) (*http.Response, error) {
	response, err := t.next.RoundTrip(request)
	if err == nil {
		response.Body = &boundedBody{ReadCloser: response.Body, read: &t.read}
	}
	return response, err
}

type boundedBody struct {
	io.ReadCloser
	read *atomic.Int64
}

// Read fails once there was too much.
func (b *boundedBody) Read(p []byte) (int, error) {
	n, err := b.ReadCloser.Read(p)
	if b.read.Add(int64(n)) > maxAllEvidenceBytes {
		return n, errTooMuchEvidence
	}
	return n, err
}
