package image

import (
	"io/fs"
	"os"
	"path"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
)

// Image is a pulled image. It stays in the cache at least until it is closed.
type Image struct {
	// Ref is the reference as asked for.
	Ref string
	// Canonical is repository@digest.
	Canonical string
	// Digest is that of the manifest, or of the index, the reference names.
	Digest digest.Digest
	// Files is the kept part of the image at its original paths. It holds
	// only directories and regular files and cannot be left.
	Files fs.FS
	// Root is the directory in Files that the request was about: that of the
	// catalog, or "." for a bundle.
	Root string
	// Downloaded is how many bytes of layers came from the registry; zero for what was
	// in the cache.
	Downloaded int64
	// Provenance says that what was downloaded is a chart with a provenance file, which
	// nobody looks at: the signatures that count are those of the image.
	Provenance bool
	// Verdict is what ImagePolicies say of the image; zero if none is about it. It is not refused,
	// but may have refusals of policies that only warn.
	Verdict imagepolicy.Verdict
	// rule is what ImagePolicies demanded when it was accepted.
	rule string
	// ModTime is when the image was unpacked, in whole seconds.
	ModTime time.Time

	dir   *os.Root
	lease *lease
}

// newImage opens a leased entry; on failure the lease is released.
func newImage(ref imageRef, held *lease) (*Image, error) {
	dir, err := held.cache.root.OpenRoot(path.Join(held.key.dir(), treeDir))
	if err != nil {
		held.release()
		return nil, diskError(err)
	}
	img := &Image{
		Ref:        ref.asked,
		Canonical:  ref.canonical(held.key.digest),
		Digest:     held.key.digest,
		Files:      dir.FS(),
		Root:       held.record.Root,
		Downloaded: held.downloaded,
		Provenance: held.provenance,
		Verdict:    held.verdict,
		rule:       held.rule,
		dir:        dir,
		lease:      held,
	}
	info, err := dir.Stat(".")
	if err != nil {
		img.Close()
		return nil, diskError(err)
	}
	img.ModTime = info.ModTime().Truncate(time.Second)
	return img, nil
}

// Close ends the use of Files and lets [Puller.Sweep] delete the image. It may
// be called more than once. An image that is not closed is never deleted.
func (i *Image) Close() {
	// A directory handle has nothing to flush.
	_ = i.dir.Close()
	i.lease.release()
}
