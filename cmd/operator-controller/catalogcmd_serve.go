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
	"github.com/clusterextensions/operator-controller/internal/catalogsource"
)

const (
	// rereadInterval is how often a served folder or file is looked at for changes.
	rereadInterval = time.Second
	// listenInterval is how often it is looked whether the server listens.
	listenInterval = 10 * time.Millisecond
)

// catalogServe is the command line of catalog serve.
type catalogServe struct {
	address  string
	name     string
	catalogs catalogFlags
}

func newCatalogServeCommand() *cobra.Command {
	o := catalogServe{address: "127.0.0.1:8080", name: "catalog"}
	command := &cobra.Command{
		Use:   "serve CATALOG",
		Short: "Serve a catalog over the HTTP API of catalogs",
		Long: `Serve a catalog over the HTTP API that catalogs have in a cluster, for local work.

The base URL is printed once it can be used. Changes in a folder or a file are served
as soon as they are complete and can be read; other catalogs are read once. Interrupt
to end; nothing is left behind.

` + catalogHelp + `

Exit codes: 0 ended by an interrupt, 1 the catalog cannot be read, or the address is
taken, 2 wrong usage.`,
		Example: `  operator-controller catalog serve ./catalog --address 127.0.0.1:8080 --name sample
  operator-controller catalog serve registry.example/catalog:latest
  curl http://127.0.0.1:8080/catalogs/sample/api/v1/all`,
		Args: cobra.ExactArgs(1),
		RunE: func(command *cobra.Command, args []string) error { return o.run(command, args[0]) },
	}
	command.Flags().StringVar(&o.address, "address", o.address, "Address to listen on; port 0 for any that is free.")
	command.Flags().StringVar(&o.name, "name", o.name, "Name of the catalog in its URL.")
	o.catalogs.bind(command.Flags())
	return command
}

func (o catalogServe) run(command *cobra.Command, from string) error {
	if problems := validation.IsDNS1123Subdomain(o.name); len(problems) > 0 {
		return misuse(command, fmt.Errorf("no catalog can have the name %q: %s", o.name, problems[0]))
	}
	source, err := catalogsource.Parse(from)
	if err != nil {
		return misuse(command, err)
	}
	reader, err := o.catalogs.reader(command)
	if err != nil {
		return err
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
	served := &servedCatalog{source: source, name: o.name, store: store, errors: command.ErrOrStderr()}
	err = reader.Files(command.Context(), source, func(files fs.FS) error {
		_, err := served.reread(command.Context(), files)
		return err
	})
	if err != nil {
		return fmt.Errorf("%w (try operator-controller catalog check %s)", trustError(err), from)
	}
	return o.serve(command, served)
}

// serve serves the catalog until the context of the command ends.
func (o catalogServe) serve(command *cobra.Command, served *servedCatalog) error {
	server, err := catalogserver.NewServer(catalogserver.ServerConfig{
		Address: o.address, Handler: catalogserver.Handler(served.store),
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
	if files, ok := served.source.Live(); ok {
		group.Go(func() error {
			served.follow(ctx, files, rereadInterval)
			return nil
		})
	}
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

// servedCatalog is a catalog whose content is in a store.
type servedCatalog struct {
	source catalogsource.Source
	name   string
	store  *catalogserver.Store
	// errors is told what cannot be served.
	errors io.Writer
	// seen is the state of the files that were read last.
	seen string
}

// follow stores the files whenever they have changed, until ctx ends.
func (c *servedCatalog) follow(ctx context.Context, files fs.FS, interval time.Duration) {
	ticker := time.NewTicker(interval)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
		}
		switch changed, err := c.reread(ctx, files); {
		case ctx.Err() != nil:
			return
		case err != nil:
			fmt.Fprintf(c.errors, "the catalog has changed, and what was in it before is served: %v\n", err)
		case changed:
			fmt.Fprintln(c.errors, "the catalog has changed, and its new content is served")
		}
	}
}

// reread stores the files, unless they look as they did before. The same failure is
// returned once.
func (c *servedCatalog) reread(ctx context.Context, files fs.FS) (changed bool, err error) {
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
	source := c.source.String()
	origin := catalogserver.Origin{Source: source, Canonical: source + "@sha256:" + state, CheckedAt: time.Now()}
	if err := c.store.Put(ctx, c.name, origin, files); err != nil {
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
