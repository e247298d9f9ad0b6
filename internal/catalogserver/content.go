package catalogserver

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/clusterextensions/operator-controller/internal/image"
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
func (w wanted) pinned() bool { return strings.Contains(w.ref, "@") }

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
	store  *Store
	puller Puller
}

// ensure makes the store hold what is wanted of a catalog. It does nothing when
// that is not due, and stores nothing that is held already. On error the store
// holds what it held before. The error is a *SourceError or one of Store.Put.
func (c contents) ensure(ctx context.Context, name string, want wanted, now time.Time) error {
	held, ok := c.store.Record(name)
	if ok && !want.due(held, now) {
		return nil
	}
	if ok {
		canonical, err := c.puller.Resolve(ctx, want.ref)
		if err != nil {
			return &SourceError{Err: err}
		}
		if canonical == held.Canonical {
			return c.confirm(name, Origin{Source: want.ref, Canonical: canonical, CheckedAt: now})
		}
	}
	pulled, err := c.puller.Pull(ctx, want.ref)
	if err != nil {
		return &SourceError{Err: err}
	}
	defer pulled.Close()
	origin := Origin{Source: want.ref, Canonical: pulled.Canonical, CheckedAt: now}
	if ok && pulled.Canonical == held.Canonical {
		return c.confirm(name, origin)
	}
	if err := c.store.Put(ctx, name, origin, pulled.Files); err != nil {
		return fmt.Errorf("error storing fbc: %w", err)
	}
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
	pulled, err := c.puller.Pull(ctx, origin.Canonical)
	if err != nil {
		return &SourceError{Err: err}
	}
	defer pulled.Close()
	if err := c.store.Put(ctx, name, origin, pulled.Files); err != nil {
		return fmt.Errorf("error storing fbc: %w", err)
	}
	return nil
}

func (c contents) confirm(name string, origin Origin) error {
	if err := c.store.Confirm(name, origin); err != nil {
		return fmt.Errorf("error storing fbc: %w", err)
	}
	return nil
}
