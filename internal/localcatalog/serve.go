// Package localcatalog serves the catalog of a person over the HTTP API of catalogs:
// where it is -> a server, which follows the files while they change.
package localcatalog

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
)

const (
	// rereadInterval is how often a served folder or file is looked at for changes.
	rereadInterval = time.Second
	// listenInterval is how often it is looked whether the server listens.
	listenInterval = 10 * time.Millisecond
)

// Config says what is served, and who hears of it. Every field is required.
type Config struct {
	Reader  *catalogsource.Reader
	Source  catalogsource.Source
	Name    string // in the URL
	Address string

	// Now returns the time.
	Now func() time.Time
	// Serving is told the base URL, once it can be used.
	Serving func(url string) error
	// Changed is told that new content is served, or with an error why what was there
	// before still is. The same error comes once.
	Changed func(error)
}

// ReadError says that the catalog cannot be read.
type ReadError struct{ Err error }

func (e *ReadError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e *ReadError) Unwrap() error { return e.Err }

// Serve serves the catalog until ctx ends, and leaves nothing behind. The error may be a
// *ReadError.
func Serve(ctx context.Context, config Config) error {
	temp, err := os.MkdirTemp("", "kubectl-extension-serve-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	store, err := catalogserver.OpenStore(catalogserver.StoreConfig{Dir: temp})
	if err != nil {
		return err
	}
	served := &catalog{Config: config, store: store}
	err = config.Reader.Files(ctx, config.Source, func(files fs.FS) error {
		_, err := served.reread(ctx, files)
		return err
	})
	if err != nil {
		return &ReadError{Err: err}
	}
	return served.serve(ctx)
}

// catalog is a catalog whose content is in a store.
type catalog struct {
	Config

	store *catalogserver.Store
	// seen is the state of the files that were read last.
	seen string
}

func (c *catalog) serve(ctx context.Context) error {
	server, err := catalogserver.NewServer(catalogserver.ServerConfig{
		Address: c.Address, Handler: catalogserver.Handler(c.store),
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(ctx)
	group.Go(func() error { return server.Start(ctx) })
	group.Go(func() error {
		listening := func() bool { return server.Addr() != nil }
		if !every(ctx, listenInterval, listening) {
			return nil
		}
		return c.Serving(fmt.Sprintf("http://%s/catalogs/%s", server.Addr(), c.Name))
	})
	if files, ok := c.Source.Live(); ok {
		group.Go(func() error {
			every(ctx, rereadInterval, func() bool {
				c.follow(ctx, files)
				return false
			})
			return nil
		})
	}
	return group.Wait()
}

// every calls done at intervals until it returns true. It returns false when ctx ends
// first.
func every(ctx context.Context, interval time.Duration, done func() bool) bool {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for !done() {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

// follow stores the files if they have changed.
func (c *catalog) follow(ctx context.Context, files fs.FS) {
	changed, err := c.reread(ctx, files)
	if ctx.Err() == nil && (changed || err != nil) {
		c.Changed(err)
	}
}

// reread stores the files, unless they look as they did before. The same failure is
// returned once.
func (c *catalog) reread(ctx context.Context, files fs.FS) (changed bool, err error) {
	state, err := stateOfFiles(files)
	if err != nil {
		state = err.Error()
	}
	if state == c.seen {
		return false, nil
	}
	c.seen = state
	if err != nil {
		return false, err
	}
	source := c.Source.String()
	origin := catalogserver.Origin{Source: source, Canonical: source + "@sha256:" + state, CheckedAt: c.Now()}
	if err := c.store.Put(ctx, c.Name, origin, files); err != nil {
		return false, err
	}
	return true, nil
}

// stateOfFiles returns a digest of the names, sizes and times of all files.
func stateOfFiles(root fs.FS) (string, error) {
	sum := sha256.New()
	err := fs.WalkDir(root, ".", func(path string, d fs.DirEntry, err error) error {
		if err != nil {
			return err
		}
		info, err := d.Info()
		if errors.Is(err, fs.ErrNotExist) {
			// It went since the folder was read, which the next look tells.
			return nil
		}
		if err == nil {
			fmt.Fprintf(sum, "%q %d %d %v\n", path, info.Size(), info.ModTime().UnixNano(), info.Mode())
		}
		return err
	})
	return hex.EncodeToString(sum.Sum(nil)), err
}
