package main

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/sync/errgroup"
	"k8s.io/apimachinery/pkg/util/validation"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
)

const (
	// rereadInterval is how often a served folder is looked at for changes.
	rereadInterval = time.Second
	// listenInterval is how often it is looked whether the server listens.
	listenInterval = 10 * time.Millisecond
)

// catalogServe is the command line of catalog serve.
type catalogServe struct {
	address string
	name    string
}

func newCatalogServeCommand() *cobra.Command {
	o := catalogServe{address: "127.0.0.1:8080", name: "catalog"}
	command := &cobra.Command{
		Use:   "serve DIR",
		Short: "Serve a catalog over the HTTP API of catalogs",
		Long: `Serve a catalog over the HTTP API that catalogs have in a cluster, for local work.

The base URL is printed once it can be used. Changes in the folder are served as
soon as they are complete and can be read. Interrupt to end; nothing is left behind.`,
		Example: `  operator-controller catalog serve ./catalog --address 127.0.0.1:8080 --name sample
  curl http://127.0.0.1:8080/catalogs/sample/api/v1/all`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args[0]) },
	}
	command.Flags().StringVar(&o.address, "address", o.address, "Address to listen on; port 0 for any that is free.")
	command.Flags().StringVar(&o.name, "name", o.name, "Name of the catalog in its URL.")
	return command
}

func (o catalogServe) run(command *cobra.Command, dir string) error {
	if problems := validation.IsDNS1123Subdomain(o.name); len(problems) > 0 {
		return misuse(command, fmt.Errorf("no catalog can have the name %q: %s", o.name, problems[0]))
	}
	switch isDir, err := isFolder(dir); {
	case err != nil:
		return &usageError{err: err}
	case !isDir:
		return &usageError{err: fmt.Errorf("there is no folder %s", dir)}
	}
	temp, err := os.MkdirTemp("", "operator-controller-serve-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(temp) }()
	store, err := catalogserver.OpenStore(catalogserver.StoreConfig{Dir: temp})
	if err != nil {
		return err
	}
	folder := &servedFolder{dir: dir, name: o.name, store: store, errors: command.ErrOrStderr()}
	if _, err := folder.reread(command.Context()); err != nil {
		return fmt.Errorf("%w (try operator-controller catalog check %s)", err, dir)
	}
	return o.serve(command, folder)
}

// serve serves the folder until the context of the command ends.
func (o catalogServe) serve(command *cobra.Command, folder *servedFolder) error {
	server, err := catalogserver.NewServer(catalogserver.ServerConfig{
		Address: o.address, Handler: catalogserver.Handler(folder.store),
	})
	if err != nil {
		return err
	}
	group, ctx := errgroup.WithContext(command.Context())
	group.Go(func() error { return server.Start(ctx) })
	group.Go(func() error {
		if !listening(ctx, server) {
			return nil
		}
		_, err := fmt.Fprintf(command.OutOrStdout(), "http://%s/catalogs/%s\n", server.Addr(), o.name)
		return err
	})
	group.Go(func() error {
		folder.follow(ctx, rereadInterval)
		return nil
	})
	return group.Wait()
}

// listening waits until the server listens. It returns false when ctx ends first.
func listening(ctx context.Context, server *catalogserver.Server) bool {
	ticker := time.NewTicker(listenInterval)
	defer ticker.Stop()
	for server.Addr() == nil {
		select {
		case <-ctx.Done():
			return false
		case <-ticker.C:
		}
	}
	return true
}

// servedFolder is a folder whose content is in a store.
type servedFolder struct {
	dir, name string
	store     *catalogserver.Store
	// errors is told what cannot be served.
	errors io.Writer
	// seen is the state of the folder that was read last.
	seen string
}

// follow stores the content of the folder whenever it has changed, until ctx ends.
func (f *servedFolder) follow(ctx context.Context, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch changed, err := f.reread(ctx); {
		case ctx.Err() != nil:
			return
		case err != nil:
			fmt.Fprintf(f.errors, "the folder has changed, and what was in it before is served: %v\n", err)
		case changed:
			fmt.Fprintln(f.errors, "the folder has changed, and its new content is served")
		}
	}
}

// reread stores the content of the folder, unless it looks as it did before. The
// same failure is returned once.
func (f *servedFolder) reread(ctx context.Context) (changed bool, err error) {
	state, err := folderState(os.DirFS(f.dir))
	if err != nil {
		state = err.Error()
	}
	if state == f.seen {
		return false, nil
	}
	f.seen = state
	if err != nil {
		return false, err
	}
	origin := catalogserver.Origin{Source: f.dir, Canonical: f.dir + "@sha256:" + state, CheckedAt: time.Now()}
	if err := f.store.Put(ctx, f.name, origin, os.DirFS(f.dir)); err != nil {
		return false, err
	}
	return true, nil
}

// folderState returns a digest of the names, sizes and times of all files.
func folderState(root fs.FS) (string, error) {
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
