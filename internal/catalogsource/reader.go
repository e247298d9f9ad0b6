package catalogsource

import (
	"context"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/image"
)

// maxStream is what a catalog client takes from a server.
const maxStream = 2 << 30

// Reader reads catalogs. It is for one goroutine.
type Reader struct {
	// Images says how images are pulled. Dir is not used.
	Images image.Config

	// HTTP reaches servers of catalogs.
	HTTP *http.Client

	// Stdin is standard input.
	Stdin io.Reader
}

// Files hands the files of a catalog to use, and keeps nothing of what was fetched.
// The error names the source.
func (r *Reader) Files(ctx context.Context, from Source, use func(fs.FS) error) error {
	if files, ok := from.Live(); ok {
		return use(files)
	}
	if from.kind == pulled {
		found, err := image.Once(ctx, r.Images, image.Request{Ref: from.text, Select: image.CatalogContent})
		if err != nil {
			return err // which names the image
		}
		defer found.Close()
		return use(found.Files)
	}
	dir, err := os.MkdirTemp("", "operator-controller-catalog-")
	if err != nil {
		return err
	}
	defer func() { _ = os.RemoveAll(dir) }()
	if err := r.store(ctx, from, filepath.Join(dir, from.storedAs())); err != nil {
		return fmt.Errorf("reading catalog %s: %w", from, err)
	}
	return use(os.DirFS(dir))
}

// Load makes a client hold the packages of a catalog under a name. What is served is
// read as the client does it for the controller. The error names the source.
func (r *Reader) Load(ctx context.Context, from Source, client *catalogclient.Client, name string) error {
	if from.kind == served {
		address := from.url.String()
		_, err := client.Refresh(ctx, catalogclient.Source{Catalog: name, Digest: address, BaseURL: address})
		if err != nil {
			return fmt.Errorf("reading catalog %s: %w", from, err)
		}
		return nil
	}
	return r.Files(ctx, from, func(files fs.FS) error {
		if err := client.Load(ctx, name, files); err != nil {
			return fmt.Errorf("reading catalog %s: %w", from, err)
		}
		return nil
	})
}

// store writes to a new file what can be read only once.
func (r *Reader) store(ctx context.Context, from Source, path string) error {
	to, err := os.OpenFile(path, os.O_CREATE|os.O_EXCL|os.O_WRONLY, 0o600)
	if err != nil {
		return err
	}
	defer func() { _ = to.Close() }()
	switch {
	case from.kind == served:
		err = catalogclient.Download(ctx, r.HTTP, from.url.String(), to)
	case from.text == Stdin:
		err = copyStream(ctx, maxStream, to, r.Stdin)
	default:
		var source *os.File
		source, err = Await(ctx, func() (*os.File, error) { return os.Open(from.text) })
		if err != nil {
			return err
		}
		defer func() { _ = source.Close() }()
		err = copyStream(ctx, maxStream, to, source)
	}
	if err != nil {
		return err
	}
	return to.Close()
}

// TooLargeError says that a catalog is larger than one may be.
type TooLargeError struct{ Limit int64 }

func (e *TooLargeError) Error() string {
	return fmt.Sprintf("it is larger than %d bytes", e.Limit)
}

func copyStream(ctx context.Context, limit int64, to io.Writer, from io.Reader) error {
	n, err := Await(ctx, func() (int64, error) { return io.Copy(to, io.LimitReader(from, limit+1)) })
	if err == nil && n > limit {
		err = &TooLargeError{Limit: limit}
	}
	return err
}

// Await ends with ctx too, although nothing can stop a read from a terminal, or the
// opening of a pipe that nobody writes to: these are left behind.
func Await[T any](ctx context.Context, read func() (T, error)) (T, error) {
	type result struct {
		value T
		err   error
	}
	done := make(chan result, 1)
	go func() {
		value, err := read()
		done <- result{value, err}
	}()
	select {
	case <-ctx.Done():
		return *new(T), ctx.Err()
	case read := <-done:
		return read.value, read.err
	}
}
