package catalogsource

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net/http"
	"net/url"
	"time"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// maxPackage bounds the objects of one package in bytes. The largest that are published have
// a quarter of it.
const maxPackage = 64 << 20

// answerTimeout bounds how long a server takes for the summary of a catalog, or for one package:
// one that says nothing would be waited for without an end.
const answerTimeout = 2 * time.Minute

// Package is all that a catalog says of one package.
type Package struct {
	// Content are its objects, as JSON, one after the other.
	Content []byte

	// Resolved is what resolution knows of it.
	Resolved resolve.Package

	// Client holds it, and nothing else.
	Client *catalogclient.Client
}

// Package reads one package of a catalog, which gets the name as; nil if it has none of the
// name. A server is asked for no more than that; of files, and of servers that only send all
// they have, all is read. The error names the source.
func (r *Reader) Package(ctx context.Context, from Source, as, name string) (*Package, error) {
	content, err := r.packageContent(ctx, from, name)
	var found *Package
	if err == nil {
		found, err = r.resolved(content, as, name)
	}
	if err != nil {
		return nil, fmt.Errorf("reading package %q of catalog %s: %w", name, from, err)
	}
	return found, nil
}

func (r *Reader) packageContent(ctx context.Context, from Source, name string) (content []byte, err error) {
	if from.kind == served {
		defer r.HTTP.CloseIdleConnections()
		content, known, err := r.servedPackage(ctx, from, name)
		if err != nil || known {
			return content, err
		}
	}
	err = r.Files(ctx, from, func(files fs.FS) (err error) {
		content, err = packageIn(ctx, files, name)
		return err
	})
	return content, err
}

// servedPackage is not known where a server cannot be asked for it.
func (r *Reader) servedPackage(ctx context.Context, from Source, name string) (content []byte, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var all bytes.Buffer
	for _, query := range []url.Values{{"schema": {fbc.SchemaPackage}, "name": {name}}, {"package": {name}}} {
		address := from.url.JoinPath("api", "v1", "metas")
		address.RawQuery = query.Encode()
		response, err := r.get(ctx, address)
		if err != nil {
			return nil, false, err
		}
		switch response.StatusCode {
		case http.StatusOK:
		case http.StatusNotFound:
			return nil, false, response.Body.Close()
		default:
			return nil, false, errors.Join(&catalogclient.StatusError{Code: response.StatusCode}, response.Body.Close())
		}
		_, err = io.Copy(&bounded{to: &all}, response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil {
			return nil, false, err
		}
	}
	return all.Bytes(), true, nil
}

// get asks a server. Whoever does closes the body of the answer.
func (r *Reader) get(ctx context.Context, address *url.URL) (*http.Response, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), nil)
	if err != nil {
		return nil, err
	}
	return r.HTTP.Do(request)
}

// packageIn are the objects of a package in the folder of a catalog. What cannot be read of
// others does not matter.
func packageIn(ctx context.Context, files fs.FS, name string) ([]byte, error) {
	var all bytes.Buffer
	to := &bounded{to: &all}
	for object, err := range (fbc.Folder{Root: files}).Objects(ctx) {
		if _, one := errors.AsType[*fbc.ObjectError](err); one && object.Owner() != name {
			continue
		}
		if err == nil {
			err = ctx.Err()
		}
		if err == nil && object.Owner() == name {
			_, err = to.Write(append(object.JSON, '\n'))
		}
		if err != nil {
			return nil, err
		}
	}
	return all.Bytes(), nil
}

// bounded takes no more than [maxPackage] bytes.
type bounded struct{ to *bytes.Buffer }

func (b *bounded) Write(data []byte) (int, error) {
	if b.to.Len()+len(data) > maxPackage {
		return 0, &TooLargeError{Limit: maxPackage}
	}
	return b.to.Write(data)
}

func (r *Reader) resolved(content []byte, catalog, name string) (*Package, error) {
	client, err := catalogclient.New(catalogclient.Config{HTTPClient: r.HTTP})
	if err != nil {
		return nil, err
	}
	err = client.LoadContent(catalog, bytes.NewReader(content))
	if errors.Is(err, catalogclient.ErrEmptyCatalog) {
		return nil, nil
	}
	if err != nil {
		return nil, err
	}
	found, err := client.Package(catalog, name)
	if err != nil || found == nil {
		return nil, err
	}
	return &Package{Content: content, Resolved: *found, Client: client}, nil
}
