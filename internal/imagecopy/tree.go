package imagecopy

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"

	"github.com/google/go-containerregistry/pkg/name"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/remote/transport"
	"github.com/google/go-containerregistry/pkg/v1/types"
)

const (
	// maxManifest bounds a manifest, an index and a list of what refers to one, in bytes, as
	// registries do.
	maxManifest = 4 << 20
	// maxParts bounds the layers of an image, the images of an index and what is attached to
	// one digest.
	maxParts = 512
	// maxManifests bounds the manifests of one image with all that is attached to it.
	maxManifests = 1_000
	// maxDepth bounds indexes in indexes, and what refers to what refers to an image.
	maxDepth = 4
)

// manifest is a manifest or an index, and all below it.
type manifest struct {
	digest    v1.Hash
	mediaType types.MediaType
	raw       []byte
	blobs     []v1.Descriptor
	children  []*manifest

	// subject is what it says that it refers to; nil for nothing.
	subject *v1.Hash
	// tag is that under which it is attached; empty for what is known by its digest.
	tag string
}

// RawManifest and MediaType are what a registry is sent.
func (m *manifest) RawManifest() ([]byte, error) { return m.raw, nil }

// MediaType is that of the registry that it was read from.
func (m *manifest) MediaType() (types.MediaType, error) { return m.mediaType, nil }

// tree is an image and what is attached to any part of it, in the order in which they were
// found: what refers to something comes after it.
type tree struct {
	repo     name.Repository
	top      *manifest
	attached []*manifest
}

// loader reads one image. Each digest is read once, and looked at once for what is attached to
// it, however often it is named.
type loader struct {
	puller *remote.Puller
	repo   name.Repository
	reads  int
	read   map[v1.Hash]*manifest
	looked map[v1.Hash]bool
}

// load reads the image of a reference in one registry, and what is attached to it there.
func load(ctx context.Context, puller *remote.Puller, ref name.Reference) (*tree, error) {
	l := &loader{puller: puller, repo: ref.Context(), read: map[v1.Hash]*manifest{}, looked: map[v1.Hash]bool{}}
	top, err := l.manifest(ctx, ref, 0)
	if err != nil {
		return nil, err
	}
	found := &tree{repo: l.repo, top: top}
	err = l.attachedBelow(ctx, found, top, 0)
	return found, err
}

// manifest reads one with all below it.
func (l *loader) manifest(ctx context.Context, ref name.Reference, depth int) (*manifest, error) {
	if depth > maxDepth {
		return nil, fmt.Errorf("%s: indexes are nested deeper than %d", ref.Identifier(), maxDepth)
	}
	read, err := l.puller.Get(ctx, ref)
	if err != nil {
		return nil, err
	}
	if l.reads++; l.reads > maxManifests {
		return nil, fmt.Errorf("it has more than %d manifests", maxManifests)
	}
	m := &manifest{digest: read.Digest, mediaType: read.MediaType, raw: read.Manifest}
	if m.mediaType.IsSchema1() {
		return nil, errors.New("it is of schema 1, which is no longer in use: push it again with a tool of today")
	}
	var content struct {
		Config    *v1.Descriptor  `json:"config"`
		Layers    []v1.Descriptor `json:"layers"`
		Blobs     []v1.Descriptor `json:"blobs"`
		Manifests []v1.Descriptor `json:"manifests"`
		Subject   *v1.Descriptor  `json:"subject"`
	}
	if err := json.Unmarshal(m.raw, &content); err != nil {
		return nil, fmt.Errorf("%s: %w", m.digest, err)
	}
	if len(content.Layers)+len(content.Blobs)+len(content.Manifests) > maxParts {
		return nil, fmt.Errorf("%s has more than %d parts", m.digest, maxParts)
	}
	if content.Subject != nil {
		m.subject = &content.Subject.Digest
	}
	if content.Config != nil {
		m.blobs = append(m.blobs, *content.Config)
	}
	for _, blob := range slices.Concat(content.Layers, content.Blobs) {
		// Of others the descriptor says where they are, and a registry need not have them.
		if blob.MediaType.IsDistributable() {
			m.blobs = append(m.blobs, blob)
		}
	}
	for _, child := range content.Manifests {
		below, err := l.byDigest(ctx, child.Digest, depth+1)
		if err != nil {
			return nil, err
		}
		m.children = append(m.children, below)
	}
	l.read[m.digest] = m
	return m, nil
}

func (l *loader) byDigest(ctx context.Context, digest v1.Hash, depth int) (*manifest, error) {
	if known := l.read[digest]; known != nil {
		return known, nil
	}
	return l.manifest(ctx, l.repo.Digest(digest.String()), depth)
}

// attachedBelow adds what is attached to a manifest, to its parts, and to that in turn.
func (l *loader) attachedBelow(ctx context.Context, to *tree, m *manifest, depth int) error {
	if depth > maxDepth {
		return fmt.Errorf("what is attached to %s is nested deeper than %d", to.top.digest, maxDepth)
	}
	if l.looked[m.digest] {
		return nil
	}
	l.looked[m.digest] = true
	for _, child := range m.children {
		if err := l.attachedBelow(ctx, to, child, depth); err != nil {
			return err
		}
	}
	if err := l.tags(ctx, to, m); err != nil {
		return err
	}
	refers, err := listReferrers(ctx, l.puller, l.repo, m.digest)
	if err != nil {
		return fmt.Errorf("what refers to %s: %w", m.digest, err)
	}
	for _, one := range refers {
		if l.looked[one.Digest] {
			continue // a list says it of several, or in a circle
		}
		found, err := l.byDigest(ctx, one.Digest, 0)
		if err != nil {
			return fmt.Errorf("what refers to %s: %w", m.digest, err)
		}
		to.attached = append(to.attached, found)
		if err := l.attachedBelow(ctx, to, found, depth+1); err != nil {
			return err
		}
	}
	return nil
}

// suffixes are those of the tags that cosign makes of a digest: for signatures, attestations
// and lists of components.
var suffixes = []string{".sig", ".att", ".sbom"}

func (l *loader) tags(ctx context.Context, to *tree, m *manifest) error {
	for _, suffix := range suffixes {
		tag := attachedTag(m.digest) + suffix
		found, err := l.manifest(ctx, l.repo.Tag(tag), 0)
		if isNotFound(err) {
			continue
		}
		if err != nil {
			return fmt.Errorf("tag %s: %w", tag, err)
		}
		tagged := *found
		tagged.tag = tag
		to.attached = append(to.attached, &tagged)
	}
	return nil
}

func attachedTag(digest v1.Hash) string { return digest.Algorithm + "-" + digest.Hex }

// listReferrers asks a registry for what refers to a digest, or where it does not know how to
// answer that, the tag that stands for the answer.
func listReferrers(ctx context.Context, puller *remote.Puller, repo name.Repository, digest v1.Hash) ([]v1.Descriptor, error) {
	index, err := remote.Referrers(repo.Digest(digest.String()), remote.WithContext(ctx), remote.Reuse(puller))
	if isUnknownRequest(err) {
		read, err := puller.Get(ctx, repo.Tag(attachedTag(digest)))
		if isNotFound(err) {
			return nil, nil
		}
		if err != nil {
			return nil, err
		}
		index, err = read.ImageIndex()
		if err != nil {
			return nil, err
		}
		return bounded(index)
	}
	if err != nil {
		return nil, err
	}
	return bounded(index)
}

func bounded(index v1.ImageIndex) ([]v1.Descriptor, error) {
	list, err := index.IndexManifest()
	if err != nil {
		return nil, err
	}
	if len(list.Manifests) > maxParts {
		return nil, fmt.Errorf("they are more than %d", maxParts)
	}
	return list.Manifests, nil
}

func isNotFound(err error) bool { return hasStatus(err, http.StatusNotFound) }

func isForbidden(err error) bool { return hasStatus(err, http.StatusForbidden) }

// isUnknownRequest tells a registry of before there was such a request, which the library
// takes for one that has failed.
func isUnknownRequest(err error) bool {
	return hasStatus(err, http.StatusMethodNotAllowed, http.StatusNotImplemented)
}

func hasStatus(err error, codes ...int) bool {
	answer, ok := errors.AsType[*transport.Error](err)
	return ok && slices.Contains(codes, answer.StatusCode)
}

// all are the manifests of the tree, each digest once.
func (t *tree) all() []*manifest {
	var list []*manifest
	seen := map[v1.Hash]bool{}
	var add func(*manifest)
	add = func(m *manifest) {
		if seen[m.digest] {
			return
		}
		seen[m.digest] = true
		for _, child := range m.children {
			add(child)
		}
		list = append(list, m)
	}
	add(t.top)
	for _, one := range t.attached {
		add(one)
	}
	return list
}

// bytes is what the tree takes in a registry that has nothing of it.
func (t *tree) bytes() int64 {
	seen := map[v1.Hash]bool{}
	var sum int64
	for _, m := range t.all() {
		sum += int64(len(m.raw))
		for _, blob := range m.blobs {
			if !seen[blob.Digest] {
				seen[blob.Digest] = true
				sum += max(0, blob.Size)
			}
		}
	}
	return sum
}
