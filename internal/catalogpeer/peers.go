package catalogpeer

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"hash"
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/diskspace"
)

// contentFile is the one file of a catalog that came from another replica.
const contentFile = "catalog.json"

// ErrNoPeers says that no replica could prove who it is, as catalogs are served without TLS.
var ErrNoPeers = errors.New("catalogs are served without TLS, so nothing is read from other replicas")

// ErrJudged says that an image is held against a policy, by its signatures. What another replica has
// may be from before there was one.
var ErrJudged = errors.New("its signatures are looked at, so it is not read from other replicas")

// OtherContentError says that a replica has other content than what is wanted.
type OtherContentError struct {
	// Source is the image that it names; empty if it names none.
	Source string
}

func (e *OtherContentError) Error() string {
	if e.Source == "" {
		return "the replica does not say of which image its content is"
	}
	return fmt.Sprintf("the replica has the content of %q", e.Source)
}

// errDamaged says that content is not what the replica has.
var errDamaged = errors.New("the content is not of the digest that the replica says it has")

// Config is what [Peers] are made from. Every field is required.
type Config struct {
	// HTTPClient trusts the replicas, and reaches the others than this one.
	HTTPClient *http.Client
	// External is the URL at which the cluster reaches any replica that is ready.
	External *url.URL
	// Dir is the folder for content on its way. It belongs to one Peers: what is in it is
	// removed.
	Dir string
	// Space is what such content may take on disk.
	Space *diskspace.Space
	// IsJudged says that an image is held against a policy, by its signatures.
	IsJudged func(canonical string) bool
}

// Peers are the other replicas. It is safe for concurrent use.
type Peers struct{ cfg Config }

var _ catalogserver.Peers = &Peers{}

// New returns the Peers, or what is wrong with cfg.
func New(cfg Config) (*Peers, error) {
	if cfg.HTTPClient == nil || cfg.External == nil || cfg.Dir == "" || cfg.Space == nil || cfg.IsJudged == nil {
		return nil, errors.New("an HTTP client, a URL, a folder, space on disk and what says which images are judged are required")
	}
	if err := os.RemoveAll(cfg.Dir); err != nil {
		return nil, fmt.Errorf("removing what was left of other replicas: %w", err)
	}
	if err := os.MkdirAll(cfg.Dir, 0o700); err != nil {
		return nil, fmt.Errorf("making the folder for what other replicas have: %w", err)
	}
	return &Peers{cfg: cfg}, nil
}

// Pull returns the content of a catalog from another replica that has it, as long as it is
// that of the image canonical. The error may be ErrJudged, ErrNoPeers, an *OtherContentError, a
// *diskspace.FullError, an *fbc.LimitError, one of catalogclient.Download, or one of the
// file system.
func (p *Peers) Pull(ctx context.Context, catalog, canonical string) (_ *catalogserver.PulledCatalog, err error) {
	switch {
	case p.cfg.IsJudged(canonical):
		return nil, ErrJudged
	case p.cfg.External.Scheme != "https":
		return nil, ErrNoPeers
	}
	dir, err := os.MkdirTemp(p.cfg.Dir, "")
	if err != nil {
		return nil, err
	}
	room := p.cfg.Space.Hold()
	end := func() {
		room.Release()
		_ = os.RemoveAll(dir) // what stays is removed at the next start
	}
	if err := p.download(ctx, catalog, canonical, dir, room); err != nil {
		end()
		return nil, err
	}
	isCurrent := func() bool { return !p.cfg.IsJudged(canonical) }
	return &catalogserver.PulledCatalog{Canonical: canonical, Files: os.DirFS(dir), IsCurrent: isCurrent, Close: end}, nil
}

func (p *Peers) download(ctx context.Context, catalog, canonical, dir string, room *diskspace.Holding) (err error) {
	file, err := os.OpenFile(filepath.Join(dir, contentFile), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	content := &content{dst: file, room: room, sum: sha256.New(), left: catalogserver.MaxBytes}
	var etag string
	accept := func(header http.Header) error {
		etag = header.Get("ETag")
		if source := header.Get(catalogserver.ResolvedSourceHeader); source != canonical {
			return &OtherContentError{Source: source}
		}
		return nil
	}
	base := p.cfg.External.JoinPath("catalogs", catalog).String()
	if err := catalogclient.DownloadIf(ctx, p.cfg.HTTPClient, base, accept, content); err != nil {
		return err
	}
	if etag != `"`+hex.EncodeToString(content.sum.Sum(nil))+`"` {
		return errDamaged
	}
	return nil
}

// content is written within a room, and a bound.
type content struct {
	dst  io.Writer
	room *diskspace.Holding
	sum  hash.Hash
	left int64
}

// Write implements [io.Writer].
func (c *content) Write(p []byte) (int, error) {
	if c.left -= int64(len(p)); c.left < 0 {
		return 0, &fbc.LimitError{What: "catalog bytes", Limit: catalogserver.MaxBytes}
	}
	if err := c.room.Take(int64(len(p))); err != nil {
		return 0, err
	}
	_, _ = c.sum.Write(p) // it does not fail
	return c.dst.Write(p)
}
