package inspect

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/catalogclient"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// content is what catalogs have, as they are read from outside of the cluster.
type content struct {
	http   *http.Client
	reader *catalogclient.Client
}

// Package is what resolution knows of a package of a catalog that is served; nil if the
// catalog has none of the name. The catalog is read once for each content that it has.
func (c *Cluster) Package(ctx context.Context, catalog *ocv1.ClusterCatalog, name string) (*resolve.Package, error) {
	base, digest, err := servedAt(catalog)
	if err != nil {
		return nil, err
	}
	if _, err := c.content.reader.Refresh(ctx, catalogclient.Source{Catalog: catalog.Name, Digest: digest, BaseURL: base}); err != nil {
		return nil, err
	}
	return c.content.reader.Package(catalog.Name, name)
}

// Content is the whole content of a catalog that is served, as JSON lines. Whoever reads it
// has to bound it, and closes it.
func (c *Cluster) Content(ctx context.Context, catalog *ocv1.ClusterCatalog) (io.ReadCloser, error) {
	return c.open(ctx, catalog, "all", nil)
}

// PackageContent is all that a catalog has about a package, as [Cluster.Content] gives it.
func (c *Cluster) PackageContent(ctx context.Context, catalog *ocv1.ClusterCatalog, name string) (io.ReadCloser, error) {
	described, err := c.open(ctx, catalog, "metas", url.Values{"schema": {"olm.package"}, "name": {name}})
	if err != nil {
		return nil, err
	}
	others, err := c.open(ctx, catalog, "metas", url.Values{"package": {name}})
	if err != nil {
		_ = described.Close() // nobody reads it
		return nil, err
	}
	return &joined{Reader: io.MultiReader(described, others), parts: []io.Closer{described, others}}, nil
}

// joined is several contents, one after the other.
type joined struct {
	io.Reader

	parts []io.Closer
}

// Close closes all parts.
func (j *joined) Close() error {
	for _, part := range j.parts {
		_ = part.Close() // what was read is read
	}
	return nil
}

// open asks the server of a catalog.
func (c *Cluster) open(ctx context.Context, catalog *ocv1.ClusterCatalog, path string, query url.Values) (io.ReadCloser, error) {
	base, _, err := servedAt(catalog)
	if err != nil {
		return nil, err
	}
	address, err := url.Parse(base)
	if err != nil {
		return nil, fmt.Errorf("catalog %q: %w", catalog.Name, err)
	}
	address = address.JoinPath("api", "v1", path)
	address.RawQuery = query.Encode()
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	reply, err := c.content.http.Do(request)
	if err != nil {
		return nil, fmt.Errorf("reading catalog %q: %w", catalog.Name, err)
	}
	if reply.StatusCode != http.StatusOK {
		_ = reply.Body.Close() // the code says it
		return nil, fmt.Errorf("reading catalog %q: %w", catalog.Name, &catalogclient.StatusError{Code: reply.StatusCode, Detail: hintFor(reply.StatusCode)})
	}
	return reply.Body, nil
}

// hintFor says which right is missing where it is one of the API server that is.
func hintFor(code int) string {
	if code == http.StatusForbidden || code == http.StatusUnauthorized {
		return "it takes the right to get services/proxy in the namespace of the controller"
	}
	return ""
}

func servedAt(catalog *ocv1.ClusterCatalog) (base, digest string, err error) {
	status := catalog.Status
	if status.URLs == nil || status.ResolvedSource == nil || status.ResolvedSource.Image == nil {
		return "", "", fmt.Errorf("catalog %q is not served", catalog.Name)
	}
	return status.URLs.Base, status.ResolvedSource.Image.Ref, nil
}
