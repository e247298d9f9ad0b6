// Command child reads catalogs over HTTP and prints what that cost the whole
// process, as one line of JSON. It is what the benchmark of catalogs measures,
// and leaves the garbage collector alone, as the controller does.
package main

import (
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/signal"
	"runtime/pprof"
	"strconv"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
)

func main() {
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt)
	defer stop()
	if err := run(ctx, os.Args[1:]); err != nil {
		fmt.Fprintln(os.Stderr, "Error:", err)
		os.Exit(1) //nolint:gocritic // the process ends here
	}
}

// options say what to do.
type options struct {
	work     string
	url      string
	dir      string
	catalogs int
	workers  int
	settle   time.Duration
	profile  string
}

func run(ctx context.Context, args []string) error {
	var o options
	flags := flag.NewFlagSet("child", flag.ContinueOnError)
	flags.StringVar(&o.work, "work", "index", "what to do with catalogs: index, update (index, then index the next content of each), restart (load the indexes that are in -dir), decode (as encoding/json does) or receive")
	flags.StringVar(&o.url, "url", "", "the URL below which catalogs are, each under its number")
	flags.StringVar(&o.dir, "dir", "", "where indexes are kept; nowhere without it")
	flags.IntVar(&o.catalogs, "catalogs", 1, "the number of catalogs")
	flags.IntVar(&o.workers, "workers", 1, "how many are read at a time")
	flags.DurationVar(&o.settle, "settle", 2*time.Second, "how long to wait before the memory that stays is read")
	flags.StringVar(&o.profile, "profile", "", "where to write a CPU profile, and with .heap a heap profile")
	if err := flags.Parse(args); err != nil {
		return err
	}
	works := map[string]work{"index": index, "update": update, "restart": restart, "decode": decode, "receive": receive}
	do, ok := works[o.work]
	if !ok {
		return fmt.Errorf("unknown work %q", o.work)
	}
	finish, err := startProfile(o.profile)
	if err != nil {
		return err
	}
	keep, err := do(ctx, o)
	if err != nil {
		return err
	}
	if err := finish(); err != nil {
		return err
	}
	usage, err := measureUsage(o.settle)
	if err != nil {
		return err
	}
	// What was read stays in use until here.
	if err := keep(); err != nil {
		return err
	}
	return json.NewEncoder(os.Stdout).Encode(usage)
}

// work returns a function that fails unless what it read can still be used.
type work func(context.Context, options) (keep func() error, err error)

func index(ctx context.Context, o options) (func() error, error) { return refresh(ctx, o, 1) }

func update(ctx context.Context, o options) (func() error, error) { return refresh(ctx, o, 2) }

func restart(ctx context.Context, o options) (func() error, error) {
	keep, err := refresh(ctx, o, 0)
	if err != nil {
		return nil, err
	}
	// Nothing was read over HTTP: what there is was on disk.
	return keep, keep()
}

// refresh reads so many revisions of every catalog.
func refresh(ctx context.Context, o options, revisions int) (func() error, error) {
	transport, err := catalogclient.NewHTTPClient("")
	if err != nil {
		return nil, err
	}
	client, err := catalogclient.New(catalogclient.Config{HTTPClient: transport, Dir: o.dir})
	if err != nil {
		return nil, err
	}
	for revision := range revisions {
		err := each(ctx, o, func(ctx context.Context, catalog int) error {
			change, err := client.Refresh(ctx, catalogclient.Source{
				Catalog: name(catalog), Digest: strconv.Itoa(revision), BaseURL: base(o, catalog, revision),
			})
			return errors.Join(err, change.CopyErr)
		})
		if err != nil {
			return nil, err
		}
	}
	return func() error {
		for catalog := range o.catalogs {
			if client.Digest(name(catalog)) == "" {
				return fmt.Errorf("%s is gone", name(catalog))
			}
		}
		return nil
	}, nil
}

func name(catalog int) string { return fmt.Sprintf("catalog-%d", catalog) }

func base(o options, catalog, revision int) string {
	return fmt.Sprintf("%s/%d/%d", o.url, catalog, revision)
}

// each calls do for every catalog, o.workers at a time.
func each(ctx context.Context, o options, do func(context.Context, int) error) error {
	group, ctx := errgroup.WithContext(ctx)
	group.SetLimit(o.workers)
	for catalog := range o.catalogs {
		group.Go(func() error { return do(ctx, catalog) })
	}
	return group.Wait()
}

// decode is the least that a reader of catalogs does with encoding/json.
func decode(ctx context.Context, o options) (func() error, error) {
	return stream(ctx, o, func(body io.Reader) error {
		decoder := json.NewDecoder(body)
		for {
			var object struct{ Schema, Package, Name string } //nolint:musttag // any case will do
			if err := decoder.Decode(&object); errors.Is(err, io.EOF) {
				return nil
			} else if err != nil {
				return err
			}
		}
	})
}

func receive(ctx context.Context, o options) (func() error, error) {
	return stream(ctx, o, func(body io.Reader) error {
		_, err := io.Copy(io.Discard, body)
		return err
	})
}

func stream(ctx context.Context, o options, read func(io.Reader) error) (func() error, error) {
	transport, err := catalogclient.NewHTTPClient("")
	if err != nil {
		return nil, err
	}
	err = each(ctx, o, func(ctx context.Context, catalog int) error {
		request, err := http.NewRequestWithContext(ctx, http.MethodGet, base(o, catalog, 0)+"/api/v1/all", nil)
		if err != nil {
			return err
		}
		response, err := transport.Do(request)
		if err != nil {
			return err
		}
		defer response.Body.Close()
		return read(response.Body)
	})
	return func() error { return nil }, err
}

// startProfile returns a function that ends and writes the profiles, if any.
func startProfile(path string) (func() error, error) {
	if path == "" {
		return func() error { return nil }, nil
	}
	file, err := os.Create(path)
	if err != nil {
		return nil, err
	}
	if err := pprof.StartCPUProfile(file); err != nil {
		return nil, err
	}
	return func() error {
		pprof.StopCPUProfile()
		heap, err := os.Create(path + ".heap")
		if err != nil {
			return err
		}
		return errors.Join(file.Close(), pprof.WriteHeapProfile(heap), heap.Close())
	}, nil
}
