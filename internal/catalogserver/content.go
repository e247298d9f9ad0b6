package catalogserver

import (
	"context"
	"errors"
	"fmt"
	"time"

	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/fetch"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/imageref"
)

// wanted is the content that a catalog should have.
type wanted struct {
	// ref is the reference of an image by tag or digest.
	ref string
	// interval is how often the digest that ref stands for is looked up; zero
	// means once.
	interval time.Duration
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
	fetches *fetch.Pool[fetched]
	now     func() time.Time
}

// fetched is what a registry has of a catalog.
type fetched struct {
	canonical string
	// catalog is nil if canonical is what was held already.
	catalog *PulledCatalog
	// took is how long it took to pull it.
	took time.Duration
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

// fetch finds out what ref stands for and, unless that is held, gets it. A held that
// is empty stands for nothing. It fails with fetch.ErrPending as long as it is on its
// way, and the catalog is woken then; otherwise the error is a *SourceError.
func (c contents) fetch(name, ref, held string) (fetched, error) {
	registry, err := image.Registry(ref)
	if err != nil {
		return fetched{}, &SourceError{Err: err}
	}
	got, err := c.fetches.Get(name, fetch.Wish[fetched]{
		Key:   ref + "\n" + held,
		Party: fetch.Party{Registry: registry, Author: name},
		Fetch: func(ctx context.Context) (fetched, error) { return c.ask(ctx, ref, held) },
	})
	if err != nil && !errors.Is(err, fetch.ErrPending) {
		err = &SourceError{Err: err}
	}
	return got, err
}

// ask is the work of a fetch.
func (c contents) ask(ctx context.Context, ref, held string) (fetched, error) {
	if held != "" {
		canonical, err := c.puller.Resolve(ctx, ref)
		if err != nil || canonical == held {
			return fetched{canonical: canonical}, err
		}
	}
	began := c.now()
	pulled, err := c.puller.Pull(ctx, ref)
	if err != nil {
		return fetched{}, err
	}
	if pulled.Canonical == held { // it has moved back
		pulled.Close()
		return fetched{canonical: held}, nil
	}
	return fetched{canonical: pulled.Canonical, catalog: pulled, took: c.now().Sub(began)}, nil
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
	got, err := c.fetch(name, want.ref, held.Canonical)
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
		return fmt.Errorf("error storing fbc: %w", err)
	}
	stored, _ := c.store.Record(name)
	log.FromContext(ctx).Info("pulled and stored the catalog",
		"image", origin.Canonical, "packages", stored.Packages, "bundles", stored.Bundles, "objects", stored.Objects,
		"bytes", stored.Bytes, "pullTook", got.took.String(), "storeTook", c.now().Sub(began).String())
	return nil
}

// mirror makes the store hold the content that origin names by digest. It looks
// up no tag, and pulls nothing that is held already. On error, which is as with
// ensure, the store holds what it held before.
func (c contents) mirror(ctx context.Context, name string, origin Origin) error {
	held, ok := c.store.Record(name)
	if ok && held.Canonical == origin.Canonical {
		// A source by digest may only mean that the tag is not known.
		if held.Source == origin.Source || origin.Source == origin.Canonical {
			return nil
		}
		origin.CheckedAt = held.CheckedAt
		return c.confirm(name, origin)
	}
	got, err := c.fetch(name, origin.Canonical, "")
	if err != nil {
		return err
	}
	return c.put(ctx, name, origin, got)
}

func (c contents) confirm(name string, origin Origin) error {
	if err := c.store.Confirm(name, origin); err != nil {
		return fmt.Errorf("error storing fbc: %w", err)
	}
	return nil
}
