package chartrepo

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"time"

	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

const (
	// MaxArchiveBytes bounds the archive of a chart, whose files have 32 MiB at most.
	MaxArchiveBytes = 64 << 20

	// MaxProvenanceBytes bounds a provenance file: Chart.yaml, a digest and a signature.
	MaxProvenanceBytes = 1 << 20

	// maxIndexBytes bounds index.yaml. With 30,000 versions, an index has about 27 MiB.
	maxIndexBytes = 64 << 20

	// fetchTimeout bounds the time of a request, from the first byte that is sent to the last
	// byte that is received.
	fetchTimeout = 5 * time.Minute

	maxRedirects = 10
)

// Client reads charts from https servers.
type Client struct {
	// HTTP sends the requests. Its CheckRedirect is not used.
	HTTP *http.Client
}

// Find returns the newest version of the chart name that is in the range and that the index
// of the repository offers. Errors name the address of the index.
func (c Client) Find(ctx context.Context, repository *url.URL, name string, versions Range) (Chart, error) {
	address := repository.JoinPath("index.yaml")
	content, err := c.get(ctx, address, maxIndexBytes)
	if err != nil {
		return Chart{}, err
	}
	charts, err := parseIndex(content)
	if err != nil {
		return Chart{}, fmt.Errorf("reading %s: %w", Shown(address), err)
	}
	found, err := charts.newest(name, versions)
	if err != nil {
		return Chart{}, fmt.Errorf("%s: %w", Shown(address), err)
	}
	chart := Chart{Name: name, Version: found.Version, Digest: found.Digest}
	if chart.Address, err = found.address(repository); err != nil {
		return Chart{}, fmt.Errorf("%s: chart %s version %s: %w", Shown(address), excerpt.Quote(name), excerpt.Quote(found.Version), err)
	}
	return chart, nil
}

// Archive returns the bytes of the archive at address. Errors name the address.
func (c Client) Archive(ctx context.Context, address *url.URL) ([]byte, error) {
	return c.get(ctx, address, MaxArchiveBytes)
}

// Provenance returns the bytes of the provenance file of the archive at address, or nil if the
// server answers that there is none. Errors name the address.
func (c Client) Provenance(ctx context.Context, address *url.URL) ([]byte, error) {
	file := *address
	file.Path += ProvenanceSuffix
	if file.RawPath != "" {
		file.RawPath += ProvenanceSuffix
	}
	content, err := c.get(ctx, &file, MaxProvenanceBytes)
	if answer, ok := errors.AsType[*statusError](err); ok && answer.isMissing() {
		return nil, nil
	}
	return content, err
}

// ProvenanceSuffix follows the name of an archive in the name of its provenance file.
const ProvenanceSuffix = ".prov"

// get returns the body of the answer of a server, of at most limit bytes. Errors name the address.
func (c Client) get(ctx context.Context, address *url.URL, limit int64) ([]byte, error) {
	late := fmt.Errorf("the server did not send all of it within %s", fetchTimeout)
	ctx, cancel := context.WithTimeoutCause(ctx, fetchTimeout, late)
	defer cancel()
	content, err := c.read(ctx, address, limit)
	if err != nil && errors.Is(context.Cause(ctx), late) {
		err = late
	}
	if failed, ok := errors.AsType[*url.Error](err); ok {
		err = failed.Err // the error names the address already
	}
	if err != nil {
		return nil, fmt.Errorf("downloading %s: %w", Shown(address), err)
	}
	return content, nil
}

func (c Client) read(ctx context.Context, address *url.URL, limit int64) ([]byte, error) {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address.String(), http.NoBody)
	if err != nil {
		return nil, err
	}
	// Without this header, the transport asks for gzip, and unpacks an archive that a server
	// sends with the content encoding gzip. The digest would not match.
	request.Header.Set("Accept-Encoding", "identity")
	client := *c.HTTP
	client.CheckRedirect = checkRedirect
	response, err := client.Do(request)
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		return nil, &statusError{code: response.StatusCode}
	}
	content, err := io.ReadAll(io.LimitReader(response.Body, limit+1))
	if err == nil && int64(len(content)) > limit {
		err = fmt.Errorf("it has more than %d bytes", limit)
	}
	return content, err
}

// checkRedirect refuses redirects to other schemes than https, and more than maxRedirects. It removes
// the Referer header, which contains the query of the previous URL. The query can be a token.
func checkRedirect(request *http.Request, via []*http.Request) error {
	request.Header.Del("Referer")
	switch {
	case request.URL.Scheme != "https":
		return fmt.Errorf("the server redirects to %s: only redirects to https are followed", excerpt.Quote(Shown(request.URL)))
	case len(via) >= maxRedirects:
		return fmt.Errorf("more than %d redirects", maxRedirects)
	}
	return nil
}

// statusError is an answer of a server other than 200.
type statusError struct{ code int }

func (e *statusError) Error() string {
	return fmt.Sprintf("the server answers %d %s", e.code, http.StatusText(e.code))
}

// isMissing reports whether a server answers like this for a file that it does not have. Object
// stores answer 403 to clients that may not list files.
func (e *statusError) isMissing() bool {
	return e.code == http.StatusNotFound || e.code == http.StatusGone || e.code == http.StatusForbidden
}
