package catalogserver

import (
	"context"
	"io/fs"
	"os"

	"github.com/opencontainers/go-digest"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imagepolicy"
	"github.com/clusterextensions/operator-controller/internal/pullsecret"
	"github.com/clusterextensions/operator-controller/internal/verdict"
)

// Puller finds and gets the images of catalogs. Errors about the reference are
// an *image.ReferenceError, and errors about the image match image.ErrContent:
// neither gets better by trying again.
type Puller interface {
	// Resolve returns the reference with the digest that ref stands for now. An image that
	// ImagePolicies have not accepted may have been signed since: that is found out, too.
	Resolve(ctx context.Context, ref string, with pullsecret.Credentials) (string, error)
	// Pull returns the catalog in the image that ref stands for now, to whom these
	// credentials give it: it may be at hand for others.
	Pull(ctx context.Context, ref string, with pullsecret.Credentials) (*PulledCatalog, error)
	// Verify finds out what ImagePolicies make of an image by digest, which [Signatures] know
	// afterwards.
	Verify(ctx context.Context, canonical string, with pullsecret.Credentials) error
}

// PullSecrets have the credentials of catalogs that name Secrets.
type PullSecrets interface {
	// Credentials returns those that a catalog has now. The error is pullsecret.ErrUnknown or
	// a *pullsecret.SecretError. The catalog is looked at again when that changes.
	Credentials(catalog pullsecret.Catalog) (pullsecret.Credentials, error)
	// Forget is for a catalog that pulls no more.
	Forget(catalog string)
}

// Signatures say what ImagePolicies make of what is served.
type Signatures interface {
	// Of waits for no registry: known is false while one is asked, and the catalog is woken
	// afterwards. The error is why it could not be asked, which is not tried again at once.
	Of(ctx context.Context, used verdict.InUse) (made imagepolicy.Verdict, known bool, err error)
	// Forget is for a catalog that is not served any more.
	Forget(catalog string)
}

// Peers are the other replicas, which may have what this one lacks.
type Peers interface {
	// Pull returns the content of a catalog from a replica that has it of the image
	// canonical, which is by digest.
	Pull(ctx context.Context, catalog, canonical string) (*PulledCatalog, error)
}

// PulledCatalog is a catalog as it is in its image.
type PulledCatalog struct {
	// Canonical is the reference of the image with its digest.
	Canonical string
	// Files is the folder of the catalog.
	Files fs.FS
	// IsCurrent says that policies demand the same of the image as when it was pulled.
	IsCurrent func() bool
	// Close ends the use of Files.
	Close func()
}

// ImagePuller returns a Puller of catalogs that pulls images with p, which it
// has to itself: an image goes when its content is no longer in use, because
// what is served is stored elsewhere.
func ImagePuller(p *image.Puller) Puller { return imagePuller{p} }

type imagePuller struct{ images *image.Puller }

func (p imagePuller) Resolve(ctx context.Context, ref string, with pullsecret.Credentials) (canonical string, err error) {
	err = request(ctx, ref, with, func(request image.Request) error {
		if canonical, err = p.images.Resolve(ctx, request); err != nil {
			return err
		}
		request.Ref = canonical
		verdict, known, err := p.images.Verified(request)
		if err == nil && known && len(verdict.Refusals) > 0 {
			_, err = p.images.Verify(ctx, request)
		}
		return err
	})
	return canonical, err
}

// request has a request made with credentials in a file, which is there for as long as that takes.
func request(ctx context.Context, ref string, with pullsecret.Credentials, do func(image.Request) error) error {
	file, err := with.Write()
	if err != nil {
		return err
	}
	if file != "" {
		defer func() {
			if err := os.Remove(file); err != nil {
				log.FromContext(ctx).Error(err, "registry credentials could not be removed")
			}
		}()
	}
	return do(image.Request{
		Ref: ref, Select: image.CatalogContent, Audience: with.Version,
		AuthFile: func(context.Context) string { return file },
	})
}

func (p imagePuller) Verify(ctx context.Context, canonical string, with pullsecret.Credentials) error {
	return request(ctx, canonical, with, func(request image.Request) error {
		_, err := p.images.Verify(ctx, request)
		return err
	})
}

func (p imagePuller) Pull(ctx context.Context, ref string, with pullsecret.Credentials) (*PulledCatalog, error) {
	var img *image.Image
	err := request(ctx, ref, with, func(request image.Request) (err error) {
		img, err = p.images.Pull(ctx, request)
		return err
	})
	if err != nil {
		return nil, err
	}
	files, err := fs.Sub(img.Files, img.Root)
	if err != nil {
		img.Close()
		return nil, err
	}
	isCurrent := func() bool { return p.images.IsCurrent(img) }
	return &PulledCatalog{Canonical: img.Canonical, Files: files, IsCurrent: isCurrent, Close: func() {
		img.Close()
		// What cannot be deleted now is tried again with the next image.
		_, _ = p.images.Sweep(func(digest.Digest) bool { return false })
	}}, nil
}
