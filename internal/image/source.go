package image

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/opencontainers/go-digest"
	"go.podman.io/image/v5/image"
	"go.podman.io/image/v5/pkg/blobinfocache/none"
	"go.podman.io/image/v5/types"

	"github.com/clusterextensions/operator-controller/internal/realm"
)

// errSilent is what ends a network call that took or stalled too long.
var errSilent = fmt.Errorf("the registry did not answer in time: %w", os.ErrDeadlineExceeded)

// source is one image in a registry, opened: its top manifest has been read
// and its digest verified.
type source struct {
	raw    types.ImageSource
	guard  *guard
	sys    *types.SystemContext
	limits Limits
	pace   *pace
	top    rawManifest
}

// openSource reaches the registry of ref, or the first of its mirrors that has
// the image. The caller closes the source.
func openSource(ctx context.Context, sys *types.SystemContext, realms realm.Realms, ref imageRef, limits Limits) (*source, error) {
	transport, err := ref.transport()
	if err != nil {
		return nil, err
	}
	opening, cancel := context.WithTimeoutCause(ctx, limits.NetworkTimeout, errSilent)
	defer cancel()
	guard, err := newGuard(ctx, sys, realms, ref, transport)
	if err != nil {
		return nil, registryError(opening, "creating image source", err)
	}
	sys.DockerProxy = guard.admit
	raw, err := transport.NewImageSource(opening, sys)
	if err != nil {
		return nil, registryError(opening, "creating image source", err)
	}
	s := &source{
		raw: raw, guard: guard, sys: sys, limits: limits,
		pace: &pace{window: limits.RateWindow, bytes: limits.RateBytes},
	}
	want, _ := ref.digest()
	if s.top, err = s.manifest(opening, nil, want); err != nil {
		s.close()
		return nil, err
	}
	return s, nil
}

func (s *source) close() {
	// Closing only drops idle connections: nothing was written that a failure
	// could lose.
	_ = s.raw.Close()
}

// manifest reads the top manifest, or that of an instance of an index.
func (s *source) manifest(ctx context.Context, instance *digest.Digest, want digest.Digest) (rawManifest, error) {
	data, mime, err := s.raw.GetManifest(ctx, instance)
	if err != nil {
		return rawManifest{}, registryError(ctx, "getting manifest", err)
	}
	return newRawManifest(data, mime, want, s.limits.ManifestBytes)
}

// choose returns the manifest of the image to unpack and, for an index, the
// digest of the instance chosen from it.
func (s *source) choose(ctx context.Context) (rawManifest, *digest.Digest, error) {
	if !s.top.isIndex() {
		return s.top, nil, nil
	}
	chosen, err := s.top.instance(s.sys)
	if err != nil {
		return rawManifest{}, nil, err
	}
	ctx, cancel := context.WithTimeoutCause(ctx, s.limits.NetworkTimeout, errSilent)
	defer cancel()
	m, err := s.manifest(ctx, &chosen, chosen)
	return m, &chosen, err
}

// unparsed returns the image as the signature policy wants it.
func (s *source) unparsed(instance *digest.Digest) types.UnparsedImage {
	return image.UnparsedInstance(s.raw, instance)
}

// blob opens a blob for reading. The reader fails once the registry stays
// silent or is too slow, and counts and digests what it hands out: see [blobReader.finish].
func (s *source) blob(ctx context.Context, object string, info types.BlobInfo) (*blobReader, error) {
	ctx, cancel := context.WithCancelCause(ctx)
	silence := newWatchdog(s.limits.NetworkTimeout, func() { cancel(errSilent) })
	defer silence.stop()
	silence.start()
	end := s.pace.wait()
	// The URLs of a descriptor come with the image and would make this
	// process send requests wherever the image says: only the registry is
	// asked.
	body, _, err := s.raw.GetBlob(ctx, types.BlobInfo{Digest: info.Digest, Size: info.Size}, none.NoCache)
	failed := func(err error) error {
		return registryError(ctx, fmt.Sprintf("copying image: %s %s", object, info.Digest), err)
	}
	if slow := end(0); slow != nil && err == nil {
		_ = body.Close() // nothing was read
		err = slow
	}
	if err != nil {
		err = failed(err)
		cancel(nil)
		return nil, err
	}
	return &blobReader{
		body: body, object: object, digest: info.Digest, hash: info.Digest.Algorithm().Hash(), left: info.Size,
		silence: silence, pace: s.pace, failed: failed, end: func() { cancel(nil) },
	}, nil
}

// config reads the image configuration.
func (s *source) config(ctx context.Context, info types.BlobInfo) ([]byte, error) {
	if err := checkBlob(info); err != nil {
		return nil, err
	}
	if info.Size > s.limits.ManifestBytes {
		return nil, &LimitError{Bound: BoundManifestBytes, Limit: s.limits.ManifestBytes, Entry: info.Digest.String()}
	}
	blob, err := s.blob(ctx, "image configuration", info)
	if err != nil {
		return nil, err
	}
	defer blob.Close()
	data, err := io.ReadAll(blob)
	if err != nil {
		return nil, err
	}
	return data, blob.finish()
}

// registryError wraps an error of the transport. The context tells a caller
// that gave up from a registry that was too slow.
func registryError(ctx context.Context, op string, err error) error {
	switch {
	case errors.Is(context.Cause(ctx), errSilent):
		err = errSilent
	case ctx.Err() != nil && !errors.Is(err, ctx.Err()):
		err = ctx.Err()
	}
	return &RegistryError{Op: op, Err: err}
}
