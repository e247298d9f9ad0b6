package catalogclient

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"net/http"
	"reflect"
	"slices"
	"sync"
	"sync/atomic"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// Config is what a Client is made from.
type Config struct {
	// HTTPClient makes the requests; see NewHTTPClient. Required. It should have
	// no timeout of its own, since Limits bounds the time.
	HTTPClient *http.Client
	// Dir holds a copy of the last good index of every catalog. It is created
	// when missing, and belongs to one Client. Empty means no copies.
	Dir string
	// Limits bounds what one catalog may cost.
	Limits Limits
}

// Source says where the content of a catalog is to be had.
type Source struct {
	// Catalog is the name of the catalog.
	Catalog string
	// Digest identifies the content: the resolved image reference with digest.
	Digest string
	// BaseURL is the URL that "api/v1/all" is relative to.
	BaseURL string
}

// Change is what a refresh did.
type Change struct {
	// Packages are the names of the packages that were added, removed or
	// changed in what is kept of them, sorted. Empty when nothing was read.
	Packages []string
	// CopyErr is why the index, although in use, could not be copied to disk:
	// after a restart the content has to be read again. Nil when it was.
	CopyErr error
}

// Client holds the packages of catalogs. It is safe for concurrent use: reading
// never waits for the network or the disk.
type Client struct {
	content fetcher
	copies  copies

	mu   sync.RWMutex
	held map[string]*holding
	// commit makes the removal of a catalog and the end of its refresh exclude
	// each other, so that what was forgotten does not come back.
	commit sync.Mutex
}

// holding is what is known of one catalog.
type holding struct {
	// turn has one place: a catalog is read by one refresh at a time.
	turn  chan struct{}
	state atomic.Pointer[state]
}

// state is the last good index of a catalog, or nil, and why the last attempt
// at a newer one failed, or nil.
type state struct {
	index   *index
	failure error
}

// index is the content of one catalog. It is never changed once it is in use.
type index struct {
	digest   string
	packages map[string]*entry
	// kept is what it takes in memory in bytes, roughly.
	kept int64
}

// New returns a Client that holds what the copies in cfg.Dir have. Damaged
// copies are discarded. The error says that cfg cannot work.
func New(cfg Config) (*Client, error) {
	if cfg.HTTPClient == nil {
		return nil, errors.New("an HTTP client is required")
	}
	limits := cfg.Limits.withDefaults()
	c := &Client{
		content: fetcher{http: cfg.HTTPClient, limits: limits},
		copies: copies{
			dir: cfg.Dir, limit: limits.KeptBytes * copyBytesPerKeptByte, all: limits.AllKeptBytes * copyBytesPerKeptByte,
		},
		held: map[string]*holding{},
	}
	loaded, err := c.copies.load()
	if err != nil {
		return nil, err
	}
	for catalog, idx := range loaded {
		c.holding(catalog).state.Store(&state{index: idx})
	}
	return c, nil
}

// Refresh reads the content of a catalog unless content of that digest is held
// already, in which case it makes no request. The new index replaces the old
// one when it is complete; on error the old one stays. Calls for one catalog
// wait for each other, calls for different catalogs do not.
//
// The error may be, among those of the HTTP client, a *StatusError,
// *StalledError, *LengthError, *EncodingError, *fbc.StreamError,
// *fbc.ObjectError, *fbc.LimitError, ErrEmptyCatalog, ErrUnknownLength or ErrForgotten.
func (c *Client) Refresh(ctx context.Context, src Source) (Change, error) {
	if src.Catalog == "" || src.Digest == "" {
		return Change{}, errors.New("a catalog without name or digest cannot be read")
	}
	h := c.holding(src.Catalog)
	select {
	case h.turn <- struct{}{}:
		defer func() { <-h.turn }()
	case <-ctx.Done():
		return Change{}, ctx.Err()
	}
	old := h.state.Load()
	if old.index != nil && old.index.digest == src.Digest {
		h.state.Store(&state{index: old.index})
		return Change{}, nil
	}
	change, err := c.replace(ctx, src, h)
	// That the caller gave up says nothing about the catalog.
	if err != nil && ctx.Err() == nil {
		h.state.Store(&state{index: old.index, failure: err})
	}
	return change, err
}

// replace reads the content of src and puts it in the place of what h has.
func (c *Client) replace(ctx context.Context, src Source, h *holding) (Change, error) {
	if src.BaseURL == "" {
		return Change{}, fmt.Errorf("error: catalog %q has a nil status.urls value", src.Catalog)
	}
	idx, err := c.content.fetch(ctx, src.BaseURL)
	if err != nil {
		return Change{}, err
	}
	idx.digest = src.Digest
	if err := c.admit(src.Catalog, idx); err != nil {
		return Change{}, err
	}
	written, copyErr := c.copies.write(src.Catalog, idx)

	c.commit.Lock()
	defer c.commit.Unlock()
	if c.lookup(src.Catalog) != h {
		c.copies.drop(written)
		return Change{}, ErrForgotten
	}
	// Another catalog may have been faster.
	if err := c.admit(src.Catalog, idx); err != nil {
		c.copies.drop(written)
		return Change{}, err
	}
	if copyErr == nil {
		copyErr = c.copies.publish(written, src.Catalog)
	}
	change := Change{CopyErr: copyErr}
	if old := h.state.Load().index; old != nil {
		change.Packages = idx.changesFrom(old)
	} else {
		change.Packages = slices.Sorted(maps.Keys(idx.packages))
	}
	h.state.Store(&state{index: idx})
	return change, nil
}

// admit returns an error if idx and the large indexes of the other catalogs take too
// much memory. Who has it already has it: no catalog takes it from another.
func (c *Client) admit(catalog string, idx *index) error {
	limits := c.content.limits
	if idx.kept <= limits.SmallBytes {
		return nil
	}
	all := idx.kept
	c.mu.RLock()
	defer c.mu.RUnlock()
	for name, h := range c.held {
		if other := h.state.Load().index; name != catalog && other != nil && other.kept > limits.SmallBytes {
			all += other.kept
		}
	}
	if all > limits.AllKeptBytes {
		return &fbc.LimitError{What: "bytes of the indexes of all large catalogs", Limit: limits.AllKeptBytes}
	}
	return nil
}

// Package returns a package of a catalog from the last good index. It is nil,
// without error, when the catalog has no such package. While a package does not
// change, the pointer stays the same across refreshes. The error is a
// *NotLoadedError when no content of the catalog was ever read, and a
// *MalformedPackageError when the content for this package cannot be used.
func (c *Client) Package(catalog, name string) (*resolve.Package, error) {
	var st state
	if h := c.lookup(catalog); h != nil {
		st = *h.state.Load()
	}
	if st.index == nil {
		return nil, &NotLoadedError{Catalog: catalog, Err: st.failure}
	}
	e := st.index.packages[name]
	switch {
	case e == nil:
		return nil, nil
	case e.Malformed != "":
		return nil, &MalformedPackageError{Catalog: catalog, Package: name, Detail: e.Malformed}
	}
	return &e.Package, nil
}

// Count returns how many packages the last good index of a catalog has, and how many of
// them are malformed. Both are zero when no content of it was ever read.
func (c *Client) Count(catalog string) (packages, malformed int) {
	h := c.lookup(catalog)
	if h == nil {
		return 0, 0
	}
	idx := h.state.Load().index
	if idx == nil {
		return 0, 0
	}
	for _, e := range idx.packages {
		if e.Malformed != "" {
			malformed++
		}
	}
	return len(idx.packages), malformed
}

// Digest returns the digest of the content that Package reads from, or "" when
// none was ever read.
func (c *Client) Digest(catalog string) string {
	if h := c.lookup(catalog); h != nil {
		if idx := h.state.Load().index; idx != nil {
			return idx.digest
		}
	}
	return ""
}

// Catalogs returns the names of all catalogs that were read or attempted and
// not forgotten, sorted. After a restart it tells those that may be gone.
func (c *Client) Catalogs() []string {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return slices.Sorted(maps.Keys(c.held))
}

// Forget removes all that is held of a catalog, on disk too. A refresh that is
// under way ends without effect. The error says that the copy on disk stays.
func (c *Client) Forget(catalog string) error {
	c.commit.Lock()
	defer c.commit.Unlock()
	c.mu.Lock()
	delete(c.held, catalog)
	c.mu.Unlock()
	return c.copies.remove(catalog)
}

func (c *Client) lookup(catalog string) *holding {
	c.mu.RLock()
	defer c.mu.RUnlock()
	return c.held[catalog]
}

// holding returns what is held of catalog, which may be nothing yet.
func (c *Client) holding(catalog string) *holding {
	c.mu.Lock()
	defer c.mu.Unlock()
	h, ok := c.held[catalog]
	if !ok {
		h = &holding{turn: make(chan struct{}, 1)}
		h.state.Store(&state{})
		c.held[catalog] = h
	}
	return h
}

// changesFrom returns the names of the packages that differ from old, sorted.
// Those that do not differ are shared with old from then on, so that callers
// can tell by the pointer.
func (idx *index) changesFrom(old *index) []string {
	var names []string
	for name, e := range idx.packages {
		if before := old.packages[name]; reflect.DeepEqual(before, e) {
			idx.packages[name] = before
		} else {
			names = append(names, name)
		}
	}
	for name := range old.packages {
		if idx.packages[name] == nil {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}
