// Package bundleimage has the images of bundles as the controller needs them: a
// reference, a ServiceAccount -> files, whether its tag has moved, and which failures are
// for ever.
//
// Pulls are shared among extensions, and are made with the credentials of their
// ServiceAccounts. Images stay for as long as an extension needs them.
package bundleimage

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/opencontainers/go-digest"
	ctrl "sigs.k8s.io/controller-runtime"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/controller"
	"github.com/clusterextensions/operator-controller/internal/fetch"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imageref"
	"github.com/clusterextensions/operator-controller/internal/pullsecret"
	"github.com/clusterextensions/operator-controller/internal/verdict"
)

// moveTimeout bounds the question whether a tag has moved, which nothing waits
// for but a report.
const moveTimeout = 10 * time.Second

// pullTimeout bounds the pull of a bundle, once it has begun.
const pullTimeout = 10 * time.Minute

// Bounds of the pulls of bundles at a time: of all, of those from one registry, and of
// those for one author, who is who may use the ServiceAccounts of a namespace. An author gets
// as many as extensions are worked on at a time by default. It takes a dozen of them to hold
// everything; a pull takes little memory, of which the window of a decompressor is the
// most.
const (
	MaxPulls         = 32
	maxRegistryPulls = 16
	maxAuthorPulls   = 8
)

// Config is what [Images] are made from. Every field is required.
type Config struct {
	Puller *image.Puller
	// Accounts have the credentials of ServiceAccounts.
	Accounts *pullsecret.Accounts
	// Extensions names those that are there to stay.
	Extensions func(context.Context) ([]string, error)
	// Wake tells an extension that what it has asked for has come.
	Wake func(extension string)
	// Now is the clock.
	Now func() time.Time
}

// Images is the image puller as the controller sees it.
type Images struct {
	// Fetches are the workers that pull bundles, which have to be started.
	Fetches *fetch.Pool[fetchedBundle]
	Kept    *Kept

	// Verdicts are what ImagePolicies say of what is installed.
	Verdicts *verdict.Verdicts

	puller *image.Puller
	now    func() time.Time

	// credentials are those of the ServiceAccount of an extension, for one fetch.
	credentials func(object.Owner) *accountCredentials
}

// New pulls nothing yet.
func New(cfg Config) *Images {
	kept := newKept(cfg.Puller.Sweep, cfg.Extensions)
	return &Images{
		Fetches:     newFetches(cfg.Wake, kept),
		Verdicts:    verdict.New(cfg.Puller, cfg.Wake, cfg.Now),
		Kept:        kept,
		puller:      cfg.Puller,
		now:         cfg.Now,
		credentials: credentialsFor(cfg.Accounts),
	}
}

// fetchedBundle is what comes of a fetch.
type fetchedBundle struct {
	image *image.Image
	moved *controller.Moved
}

var _ controller.Bundles = &Images{}

// newFetches makes the workers that pull bundles.
func newFetches(wake func(extension string), kept *Kept) *fetch.Pool[fetchedBundle] {
	return fetch.New(fetch.Config[fetchedBundle]{
		Limits:  fetch.Limits{Total: MaxPulls, PerRegistry: maxRegistryPulls, PerAuthor: maxAuthorPulls},
		Timeout: pullTimeout,
		Wake:    wake,
		Discard: func(fetched fetchedBundle) { fetched.image.Close(); kept.Discarded() },
	})
}

// Fetch gives what is cached at once, unless it is about a tag: whether that has moved
// only the registry knows.
func (i *Images) Fetch(ctx context.Context, owner object.Owner, wanted controller.BundleImage) (controller.Files, error) {
	request := image.Request{Ref: wanted.Ref, Select: image.BundleContent, Digest: digest.Digest(wanted.Digest)}
	registry, err := image.Registry(wanted.Ref)
	if err != nil {
		return controller.Files{}, i.fetchError(ctx, request, err)
	}
	if imageref.Digest(wanted.Ref) != "" {
		cached, err := i.puller.Cached(ctx, request)
		if err != nil {
			return controller.Files{}, i.fetchError(ctx, request, err)
		}
		if cached != nil {
			return i.files(ctx, owner, fetchedBundle{image: cached}), nil
		}
	}
	logger := ctrl.LoggerFrom(ctx)
	fetched, err := i.Fetches.Get(owner.Name, fetch.Wish[fetchedBundle]{
		Key:   strings.Join([]string{string(owner.UID), owner.Namespace, owner.ServiceAccount, wanted.Ref, wanted.Digest}, "\n"),
		Party: fetch.Party{Registry: registry, Author: owner.Namespace},
		Fetch: func(ctx context.Context) (fetchedBundle, error) {
			return i.pull(ctrl.LoggerInto(ctx, logger), owner, request)
		},
	})
	switch {
	case errors.Is(err, fetch.ErrPending):
		return controller.Files{}, controller.ErrFetching
	case err != nil:
		return controller.Files{}, err
	case !i.puller.IsCurrent(fetched.image):
		fetched.image.Close()
		return i.Fetch(ctx, owner, wanted) // which is a new wish, and not there yet
	}
	return i.files(ctx, owner, fetched), nil
}

// Abandon ends the pull for an extension that needs it no more.
func (i *Images) Abandon(extension string) { i.Fetches.Abandon(extension) }

// Forget lets go of what is held for an extension that is gone.
func (i *Images) Forget(ctx context.Context, extension string) {
	i.Verdicts.Forget(extension)
	i.Kept.Forget(ctx, extension)
}

func (i *Images) files(ctx context.Context, owner object.Owner, fetched fetchedBundle) controller.Files {
	i.Kept.fetched(ctx, owner.Name, fetched.image.Digest)
	return controller.Files{
		FS:     fetched.image.Files,
		Digest: fetched.image.Digest.String(),
		Moved:  fetched.moved,
		Close:  fetched.image.Close,
	}
}

// pull asks the registry. It is the work of a fetch.
func (i *Images) pull(ctx context.Context, owner object.Owner, request image.Request) (fetchedBundle, error) {
	credentials := i.credentials(owner)
	defer credentials.remove(ctx)
	request.AuthFile = credentials.file
	began := i.now()
	pulled, err := i.puller.Pull(ctx, request)
	if err != nil {
		return fetchedBundle{}, credentials.explain(i.fetchError(ctx, request, err))
	}
	if pulled.Downloaded > 0 {
		logger := ctrl.LoggerFrom(ctx).WithValues("image", request.Ref, "digest", pulled.Digest)
		logger.Info("pulled the image of a bundle", "bytes", pulled.Downloaded, "took", i.now().Sub(began).String())
		if pulled.Provenance {
			logger.Info("the provenance file of the chart is not looked at: the signatures that count are those of its image")
		}
	}
	return fetchedBundle{image: pulled, moved: i.moved(ctx, request)}, nil
}

// moved asks whether a tag still stands for what it did. Not to know is no
// reason to fail: what is wanted is at hand.
func (i *Images) moved(ctx context.Context, request image.Request) *controller.Moved {
	if request.Digest == "" || imageref.Digest(request.Ref) != "" {
		return nil
	}
	ctx, cancel := context.WithTimeout(ctx, moveTimeout)
	defer cancel()
	now, err := i.puller.Resolve(ctx, request)
	if err != nil {
		ctrl.LoggerFrom(ctx).V(1).Info("not known whether the image has moved under its tag", "image", request.Ref, "reason", err.Error())
		return nil
	}
	current := imageref.Digest(now)
	if current == request.Digest {
		return nil
	}
	return &controller.Moved{Image: request.Ref, From: request.Digest.String(), To: current.String()}
}

// fetchError tells failures for ever from others. What is wrong with the content of an image
// stays wrong; a tag can be moved to a better one.
func (i *Images) fetchError(ctx context.Context, request image.Request, err error) error {
	var unusable *image.ReferenceError
	var refused *image.PolicyError
	switch {
	case errors.As(err, &refused) && refused.Err == nil:
		return &controller.RefusedImageError{Image: request.Ref, Err: err}
	case errors.As(err, &unusable):
		return &controller.UnusableImageError{Image: request.Ref, Err: err}
	case errors.Is(err, image.ErrContent):
		return &controller.UnusableImageError{Image: request.Ref, Err: err, ByTag: imageref.Digest(request.Ref) == ""}
	case errors.Is(err, image.ErrNotFound):
		if moved := i.moved(ctx, request); moved != nil {
			return &controller.MovedImageError{Moved: *moved}
		}
	}
	return err
}
