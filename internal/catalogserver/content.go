package catalogserver

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/fetch"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imageref"
	"github.com/clusterextensions/operator-controller/internal/pullsecret"
)

// wanted is the content that a catalog should have.
type wanted struct {
	// ref is the reference of an image by tag or digest.
	ref string
	// interval is how often the digest that ref stands for is looked up; zero
	// means once.
	interval time.Duration
	// catalog is which one it is, with the Secrets that it names.
	catalog pullsecret.Catalog
}

// pinned reports whether the content can never change.
func (w wanted) pinned() bool { return imageref.Digest(w.ref) != "" }

// due reports whether it has to be found out what the content is, given what
// is held of it.
func (w wanted) due(held Record, now time.Time) bool {
	if held.Source != w.ref {
		return true
	}
	if w.interval == 0 {
		return false
	}
	// After the clock was set back, the time of the last look tells nothing.
	return now.Before(held.CheckedAt) || !now.Before(held.CheckedAt.Add(w.interval))
}

// wait returns the time until the content is due again; zero means never. It is
// longer by a part of up to one percent, in [0,1), so that catalogs with one
// interval do not all come at once.
func (w wanted) wait(held Record, now time.Time, part float64) time.Duration {
	if w.interval == 0 {
		return 0
	}
	jitter := time.Duration(part * float64(w.interval) / 100)
	// Zero would mean never.
	return max(held.CheckedAt.Add(w.interval+jitter).Sub(now), time.Second)
}

// SourceError says that content could not be pulled.
type SourceError struct{ Err error }

func (e *SourceError) Error() string {
	if _, ok := errors.AsType[*image.ReferenceError](e.Err); ok {
		// The wording is what users of the reference implementation match.
		return fmt.Sprintf("source catalog content: terminal error: %v", e.Err)
	}
	return fmt.Sprintf("source catalog content: %v", e.Err)
}

// Unwrap returns the cause.
func (e *SourceError) Unwrap() error { return e.Err }

// contents brings the store to what is wanted.
type contents struct {
	store   *Store
	puller  Puller
	peers   Peers
	secrets PullSecrets
	fetches *fetch.Pool[fetched]
	now     func() time.Time
	// stored is told of a catalog with content that is new here.
	stored func(catalog string)
}

// sought is content that is to be fetched.
type sought struct {
	// ref is the reference of an image by tag or digest.
	ref string
	// held is the reference by digest of what there is; empty for nothing.
	held string
	// published is the reference by digest of what the status says is served, if that is to
	// be had rather than what ref stands for; empty otherwise.
	published string
	// catalog is which one it is for.
	catalog pullsecret.Catalog
	// credentials are those of the catalog when the search began, or why there are none,
	// which matters if a registry is asked.
	credentials func() (pullsecret.Credentials, error)
}

// fetched is what a registry, or another replica, has of a catalog.
type fetched struct {
	canonical string
	// catalog is nil if canonical is what was held already.
	catalog *PulledCatalog
	// took is how long it took to pull it.
	took time.Duration
	// fromPeer says that it came from another replica.
	fromPeer bool
}

func (f fetched) close() {
	if f.catalog != nil {
		f.catalog.Close()
	}
}

// newFetches makes the workers that pull catalogs. Each catalog is an author of its
// own.
func newFetches(wake func(catalog string)) *fetch.Pool[fetched] {
	return fetch.New(fetch.Config[fetched]{
		Limits:  fetch.Limits{Total: MaxPulls, PerRegistry: maxRegistryPulls, PerAuthor: maxCatalogPulls},
		Timeout: pullTimeout,
		Wake:    wake,
		Discard: fetched.close,
	})
}

// check says which pull secret of a catalog cannot be used, also when none is needed at the
// moment. The error is fetch.ErrPending as long as they are not known, or a *SourceError.
func (c contents) check(catalog pullsecret.Catalog) error {
	_, err := c.secrets.Credentials(catalog)
	return sourceError(err)
}

// sourceError is the error of what was asked for.
func sourceError(err error) error {
	switch {
	case err == nil:
		return nil
	case errors.Is(err, fetch.ErrPending), errors.Is(err, pullsecret.ErrUnknown):
		return fetch.ErrPending
	}
	return &SourceError{Err: err}
}

// fetch finds out what is sought and, unless that is held, gets it. It fails with
// fetch.ErrPending as long as it is on its way, or the pull secrets are not known, and the
// catalog is woken then; otherwise the error is a *SourceError.
func (c contents) fetch(ctx context.Context, name string, s sought) (fetched, error) {
	registry, err := image.Registry(s.ref)
	if err != nil {
		return fetched{}, &SourceError{Err: err}
	}
	credentials, unusable := c.secrets.Credentials(s.catalog)
	s.credentials = func() (pullsecret.Credentials, error) { return credentials, unusable }
	logger := log.FromContext(ctx)
	got, err := c.fetches.Get(name, fetch.Wish[fetched]{
		Key:   s.ref + "\n" + s.held + "\n" + s.published + "\n" + credentials.Version + "\n" + fmt.Sprint(unusable),
		Party: fetch.Party{Registry: registry, Author: name},
		Fetch: func(ctx context.Context) (fetched, error) { return c.ask(log.IntoContext(ctx, logger), name, s) },
	})
	if err == nil && got.catalog != nil && !got.catalog.IsCurrent() {
		got.close()
		return c.fetch(ctx, name, s) // which is a new wish, and not there yet
	}
	return got, sourceError(err)
}

// ask is the work of a fetch. What is published is asked of other replicas first: they are
// near, and a registry may be out of reach. Where nobody has it any more, what the
// reference stands for now takes its place.
func (c contents) ask(ctx context.Context, name string, s sought) (fetched, error) {
	if s.published != "" {
		got, err := c.askForPublished(ctx, name, s)
		if err == nil || s.ref == s.published {
			return got, err
		}
	}
	if s.held != "" {
		credentials, err := s.credentials()
		if err != nil {
			return fetched{}, err
		}
		canonical, err := c.puller.Resolve(ctx, s.ref, credentials)
		if err != nil || canonical == s.held {
			return fetched{canonical: canonical}, err
		}
	}
	return c.pull(ctx, s)
}

func (c contents) askForPublished(ctx context.Context, name string, s sought) (fetched, error) {
	began, canonical := c.now(), s.published
	pulled, err := c.peers.Pull(ctx, name, canonical)
	if err == nil {
		return fetched{canonical: canonical, catalog: pulled, took: c.now().Sub(began), fromPeer: true}, nil
	}
	log.FromContext(ctx).V(1).Info("no other replica gives the content", "image", canonical, "reason", err.Error())
	return c.pull(ctx, sought{ref: canonical, credentials: s.credentials})
}

func (c contents) pull(ctx context.Context, s sought) (fetched, error) {
	credentials, err := s.credentials()
	if err != nil {
		return fetched{}, err
	}
	began := c.now()
	pulled, err := c.puller.Pull(ctx, s.ref, credentials)
	if err != nil {
		return fetched{}, err
	}
	if pulled.Canonical == s.held { // it has moved back
		pulled.Close()
		return fetched{canonical: s.held}, nil
	}
	return fetched{canonical: pulled.Canonical, catalog: pulled, took: c.now().Sub(began)}, nil
}

// verify asks for the signatures of an image with the credentials of a catalog.
func (c contents) verify(catalog pullsecret.Catalog, canonical string) func(context.Context) error {
	return func(ctx context.Context) error {
		with, err := c.secrets.Credentials(catalog)
		if err != nil {
			return err
		}
		return c.puller.Verify(ctx, canonical, with)
	}
}

// ensure makes the store hold what is wanted of a catalog. It does nothing when
// that is not due, and stores nothing that is held already. On error the store
// holds what it held before. The error is fetch.ErrPending, a *SourceError or one of
// Store.Put.
func (c contents) ensure(ctx context.Context, name string, want wanted, now time.Time) error {
	held, ok := c.store.Record(name)
	if ok && !want.due(held, now) {
		return nil
	}
	got, err := c.fetch(ctx, name, sought{ref: want.ref, held: held.Canonical, catalog: want.catalog})
	if err != nil {
		return err
	}
	origin := Origin{Source: want.ref, Canonical: got.canonical, CheckedAt: now}
	if got.catalog == nil {
		return c.confirm(name, origin)
	}
	return c.put(ctx, name, origin, got)
}

func (c contents) put(ctx context.Context, name string, origin Origin, got fetched) error {
	defer got.close()
	began := c.now()
	if err := c.store.Put(ctx, name, origin, got.catalog.Files); err != nil {
		return storingError(err)
	}
	stored, _ := c.store.Record(name)
	log.FromContext(ctx).Info("pulled and stored the catalog",
		"image", origin.Canonical, "packages", stored.Packages, "bundles", stored.Bundles, "objects", stored.Objects,
		"bytes", stored.Bytes, "fromReplica", got.fromPeer, "pullTook", got.took.String(), "storeTook", c.now().Sub(began).String())
	c.stored(name)
	return nil
}

// mirror makes the store hold the content that origin names by digest. It looks
// up no tag, and pulls nothing that is held already. On error, which is as with
// ensure, the store holds what it held before.
func (c contents) mirror(ctx context.Context, catalog pullsecret.Catalog, origin Origin) error {
	name := catalog.Name
	held, ok := c.store.Record(name)
	if ok && held.Canonical == origin.Canonical {
		// A source by digest may only mean that the tag is not known.
		if held.Source == origin.Source || origin.Source == origin.Canonical {
			return nil
		}
		origin.CheckedAt = held.CheckedAt
		return c.confirm(name, origin)
	}
	got, err := c.fetch(ctx, name, sought{ref: origin.Canonical, published: origin.Canonical, catalog: catalog})
	if err != nil {
		return err
	}
	return c.put(ctx, name, origin, got)
}

// restore makes a store without content of the catalog hold what origin names by digest,
// which the status says is served, or if nobody has that what is wanted. The error
// is as with ensure.
func (c contents) restore(ctx context.Context, name string, origin Origin, want wanted, now time.Time) error {
	got, err := c.fetch(ctx, name, sought{ref: want.ref, published: origin.Canonical, catalog: want.catalog})
	if err != nil {
		return err
	}
	if got.canonical != origin.Canonical {
		origin = Origin{Source: want.ref, Canonical: got.canonical, CheckedAt: now}
	}
	return c.put(ctx, name, origin, got)
}

func (c contents) confirm(name string, origin Origin) error {
	if err := c.store.Confirm(name, origin); err != nil {
		return storingError(err)
	}
	return nil
}

// storingError is of the store. Where on the disk an error comes from is left out: the names
// of temporary folders and files differ with each try, so the status would differ too, and
// its write would bring the next try at once.
func storingError(err error) error {
	if file, ok := errors.AsType[*fs.PathError](err); ok {
		err = fmt.Errorf("%s: %w", file.Op, file.Err)
	} else if link, ok := errors.AsType[*os.LinkError](err); ok {
		err = fmt.Errorf("%s: %w", link.Op, link.Err)
	}
	return fmt.Errorf("error storing fbc: %w", err)
}
