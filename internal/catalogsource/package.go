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
	if err != nil {
		return nil, err
	}
	found, err := r.resolved(content, as, name)
	return found, packageError(err, from, name)
}

// packageError names the package and the source of an error; nil is none.
func packageError(err error, from Source, name string) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("reading package %q of catalog %s: %w", name, from, err)
}

func (r *Reader) packageContent(ctx context.Context, from Source, name string) (content []byte, err error) {
	if from.kind == served {
		defer r.HTTP.CloseIdleConnections()
		content, known, err := r.servedPackage(ctx, from, name)
		if err != nil || known {
			return content, packageError(err, from, name)
		}
	}
	err = r.Files(ctx, from, func(files fs.FS) (err error) {
		content, err = packageIn(ctx, files, name)
		return packageError(err, from, name)
	})
	return content, err
}

// servedPackage is not known where a server cannot be asked for it.
func (r *Reader) servedPackage(ctx context.Context, from Source, name string) (content []byte, known bool, err error) {
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	var all bytes.Buffer
	for _, query := range []url.Values{packageObject(name), {"package": {name}}} {
		body, err := r.objects(ctx, from, query)
		if answer, ok := errors.AsType[*catalogclient.StatusError](err); ok && answer.Code == http.StatusNotFound {
			return nil, false, nil
		}
		if err != nil {
			return nil, false, err
		}
		_, err = io.Copy(&bounded{to: &all}, body)
		if err := errors.Join(err, body.Close()); err != nil {
			return nil, false, err
		}
	}
	return all.Bytes(), true, nil
}

// PackageObject is the olm.package object of a package, of a catalog that is served; it is empty
// if there is none. A server that does not know how to send it alone sends more: whoever reads it
// has to bound it, and closes it. The error names the source.
func (r *Reader) PackageObject(ctx context.Context, from Source, name string) (io.ReadCloser, error) {
	if from.kind != served {
		return nil, packageError(errors.New("it has no server"), from, name)
	}
	body, err := r.objects(ctx, from, packageObject(name))
	return body, packageError(err, from, name)
}

// packageObject asks for the olm.package object of a package.
func packageObject(name string) url.Values {
	return url.Values{"schema": {fbc.SchemaPackage}, "name": {name}}
}

// objects asks a server for some objects of a catalog. The error is a
// [*catalogclient.StatusError] if it answers anything but that.
func (r *Reader) objects(ctx context.Context, from Source, query url.Values) (io.ReadCloser, error) {
	address := from.url.JoinPath("api", "v1", "metas")
	address.RawQuery = query.Encode()
	response, err := r.get(ctx, address)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		_ = response.Body.Close() // the code says it
		return nil, &catalogclient.StatusError{Code: response.StatusCode}
	}
	return response.Body, nil
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
