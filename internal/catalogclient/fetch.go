package catalogclient

import (
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"net/url"
	"strings"
	"time"

	"github.com/clusterextensions/operator-controller/internal/catalogclient/fbc"
	"github.com/clusterextensions/operator-controller/internal/excerpt"
)

// maxDetailBytes is enough of a plain text answer to recognise who sent it.
const maxDetailBytes = 128

// fetcher reads the content of a catalog from its server.
type fetcher struct {
	http   *http.Client
	limits Limits
	// accept refuses a reply by its headers; nil for none.
	accept func(http.Header) error
}

// fetch returns the index of the catalog at base once all of it has arrived.
func (f fetcher) fetch(ctx context.Context, base string) (idx *index, err error) {
	err = f.receive(ctx, base, func(content io.Reader) (err error) {
		idx, err = decodeIndex(content, f.limits)
		return err
	})
	return idx, err
}

// Download writes the content of the catalog below base as it is, once, within the
// default limits. When it fails, what it has written is of no use. The error is as
// that of [Client.Refresh].
func Download(ctx context.Context, through *http.Client, base string, to io.Writer) error {
	return DownloadIf(ctx, through, base, nil, to)
}

// DownloadIf is [Download] of content that is only read if accept, which is given the
// headers of the reply, returns no error. Otherwise the error is that of accept; nil accepts
// all.
func DownloadIf(ctx context.Context, through *http.Client, base string, accept func(http.Header) error, to io.Writer) error {
	f := fetcher{http: through, limits: Limits{}.withDefaults(), accept: accept}
	return f.receive(ctx, base, func(content io.Reader) error {
		limit := f.limits.Content.StreamBytes
		n, err := io.Copy(to, io.LimitReader(content, limit+1))
		if err == nil && n > limit {
			err = &fbc.LimitError{What: "bytes", Limit: limit}
		}
		return err
	})
}

// receive has the content of the catalog at base used while it arrives. Without an
// error all of it has arrived.
func (f fetcher) receive(ctx context.Context, base string, use func(io.Reader) error) error {
	address, err := contentURL(base)
	if err != nil {
		return err
	}
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	w := newWatchdog(f.limits, cancel)
	defer w.stop()

	err = f.read(ctx, address, w, use)
	var stalled *StalledError
	if err != nil && errors.As(context.Cause(ctx), &stalled) {
		return fmt.Errorf("error performing request: Get %q: %w", address, stalled)
	}
	return err
}

func contentURL(base string) (string, error) {
	u, err := url.Parse(base)
	if err != nil {
		return "", fmt.Errorf("error forming catalogd API endpoint: %w", err)
	}
	if u.Scheme != "http" && u.Scheme != "https" {
		return "", fmt.Errorf("error forming catalogd API endpoint: scheme must be either http or https: %q", base)
	}
	return u.JoinPath("api", "v1", "all").String(), nil
}

func (f fetcher) read(ctx context.Context, address string, w *watchdog, use func(io.Reader) error) error {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return fmt.Errorf("error forming request: %w", err)
	}
	// Servers of catalogs are near, where compression costs both sides more time
	// than it saves, and an uncompressed body mostly has a length to check.
	req.Header.Set("Accept-Encoding", identity)
	resp, err := f.http.Do(req)
	if err != nil {
		return fmt.Errorf("error performing request: %w", err)
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return &StatusError{Code: resp.StatusCode, Detail: detail(resp)}
	}
	if f.accept != nil {
		if err := f.accept(resp.Header); err != nil {
			return err
		}
	}
	if endsUnnoticed(resp) {
		return ErrUnknownLength
	}
	body := &body{src: resp.Body, watchdog: w}
	content, err := decoded(body, resp.Header.Get("Content-Encoding"))
	if err != nil {
		return err
	}
	if err := use(content); err != nil {
		return err
	}
	if resp.ContentLength >= 0 && body.received != resp.ContentLength {
		return &LengthError{Announced: resp.ContentLength, Received: body.received}
	}
	return nil
}

// endsUnnoticed reports whether the end of the body is where the connection
// closes. Everywhere else the HTTP layer tells a complete body from a cut one:
// by length, by the last chunk or by the end of the HTTP/2 stream.
func endsUnnoticed(resp *http.Response) bool {
	return resp.ProtoMajor == 1 && resp.ContentLength < 0 && len(resp.TransferEncoding) == 0
}

const identity = "identity"

// decoded returns the content of a body that the server encoded, although it was
// asked not to. The bounds on content are for what it returns.
func decoded(body io.Reader, encoding string) (io.Reader, error) {
	switch strings.ToLower(encoding) {
	case "", identity:
		return body, nil
	case "gzip", "x-gzip":
		content, err := gzip.NewReader(body)
		if err != nil {
			return nil, fmt.Errorf("error decompressing catalog contents: %w", err)
		}
		return content, nil
	}
	return nil, &EncodingError{Encoding: encoding}
}

// detail returns the first line of a plain text body, for a message: it tells
// the catalog server from a proxy in front of it.
func detail(resp *http.Response) string {
	kind, _, err := mime.ParseMediaType(resp.Header.Get("Content-Type"))
	if err != nil || kind != "text/plain" {
		return ""
	}
	start, err := io.ReadAll(io.LimitReader(resp.Body, maxDetailBytes))
	if err != nil {
		return ""
	}
	line, _, _ := strings.Cut(strings.ToValidUTF8(string(start), ""), "\n")
	return excerpt.Fold(line)
}

// watchdog cancels a request that makes no progress, or takes too long in all.
type watchdog struct {
	idle        *time.Timer
	total       *time.Timer
	idleTimeout time.Duration
}

// newWatchdog returns a watchdog that expects progress from now on.
func newWatchdog(limits Limits, cancel context.CancelCauseFunc) *watchdog {
	return &watchdog{
		idleTimeout: limits.Idle,
		idle:        time.AfterFunc(limits.Idle, func() { cancel(&StalledError{After: limits.Idle}) }),
		total:       time.AfterFunc(limits.Total, func() { cancel(&StalledError{After: limits.Total, Total: true}) }),
	}
}

// pause ends a wait for the server: what we do ourselves is not its idle time.
func (w *watchdog) pause() { w.idle.Stop() }

// resume starts a wait for the server.
func (w *watchdog) resume() { w.idle.Reset(w.idleTimeout) }

func (w *watchdog) stop() {
	w.idle.Stop()
	w.total.Stop()
}

// body counts what it reads and lets a watchdog watch every read.
type body struct {
	src      io.Reader
	watchdog *watchdog
	received int64
}

func (b *body) Read(p []byte) (int, error) {
	b.watchdog.resume()
	defer b.watchdog.pause()
	n, err := b.src.Read(p)
	b.received += int64(n)
	return n, err
}
