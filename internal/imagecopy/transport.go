package imagecopy

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"sync"
	"time"

	"github.com/clusterextensions/operator-controller/internal/realm"
	"github.com/clusterextensions/operator-controller/internal/referrers"
	"github.com/clusterextensions/operator-controller/internal/registrytls"
)

// silenceTimeout is how long a registry may neither send nor take anything.
const silenceTimeout = 2 * time.Minute

var (
	// errSilent is none that the library takes for one that passes: it has taken long enough.
	errSilent = errors.New("the registry did not answer in time")
	errLarge  = fmt.Errorf("the registry sends more than the %d bytes that a manifest may have", maxManifest)
)

// wire is how registries are reached. It gives each host a transport of its own.
type wire struct {
	certsDir string
	realms   realm.Realms
	silence  time.Duration

	mu         sync.Mutex
	transports map[endpoint]*http.Transport
}

// endpoint is a registry, and whether it may be asked without TLS, or with a certificate of
// anybody.
type endpoint struct {
	host     string
	insecure bool
}

func newWire(certsDir string, realms realm.Realms) *wire {
	return &wire{certsDir: certsDir, realms: realms, silence: silenceTimeout, transports: map[endpoint]*http.Transport{}}
}

// to sends requests that begin at a registry.
func (w *wire) to(at endpoint) (http.RoundTripper, error) {
	w.mu.Lock()
	defer w.mu.Unlock()
	transport := w.transports[at]
	if transport == nil {
		config, err := registrytls.Config(w.certsDir, at.host, at.insecure)
		if err != nil {
			return nil, err
		}
		transport = &http.Transport{
			Proxy: http.ProxyFromEnvironment, TLSClientConfig: config, ForceAttemptHTTP2: true,
			TLSHandshakeTimeout: 30 * time.Second, IdleConnTimeout: time.Minute, MaxIdleConnsPerHost: maxBlobs * maxRepositories,
			DialContext: (&net.Dialer{Timeout: 30 * time.Second}).DialContext,
		}
		w.transports[at] = transport
	}
	return referrers.Whole(w.realms.Guard(at.host, &watched{at: at, next: transport, silence: w.silence})), nil
}

// close drops the connections that nobody uses.
func (w *wire) close() {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, transport := range w.transports {
		transport.CloseIdleConnections()
	}
}

// watched refuses what is not to be sent, and ends what takes too long or is too large.
type watched struct {
	at      endpoint
	next    http.RoundTripper
	silence time.Duration
}

// RoundTrip implements [http.RoundTripper]. The library sends requests without TLS, with
// credentials, to private addresses whenever there is no answer over TLS, which whoever is in
// between can see to.
func (t *watched) RoundTrip(req *http.Request) (*http.Response, error) {
	if host := req.URL.Hostname(); req.URL.Scheme != "https" && !isThisMachine(host) && (!t.at.insecure || req.URL.Host != t.at.host) {
		return nil, fmt.Errorf("%s is not asked without TLS; if the registry speaks none, say --plain-http for the target, and insecure = true in registries.conf for a source", req.URL.Host)
	}
	ctx, cancel := context.WithCancelCause(req.Context())
	timer := time.AfterFunc(t.silence, func() { cancel(errSilent) })
	alive := func() { timer.Reset(t.silence) }
	end := func() {
		timer.Stop()
		cancel(nil)
	}
	req = req.Clone(ctx)
	if req.Body != nil && req.Body != http.NoBody {
		req.Body = &counted{ReadCloser: req.Body, alive: alive, failed: func(err error) error { return err }}
	}
	resp, err := t.next.RoundTrip(req)
	if err != nil {
		if errors.Is(context.Cause(ctx), errSilent) {
			err = errSilent
		}
		end()
		return nil, err
	}
	body := &counted{ReadCloser: resp.Body, alive: alive, end: end, failed: func(err error) error {
		if errors.Is(context.Cause(ctx), errSilent) {
			return errSilent
		}
		return err
	}}
	if !strings.Contains(req.URL.Path, "/blobs/") {
		body.limit, body.left = true, maxManifest
	}
	resp.Body = body
	return resp, nil
}

// counted is a body of which each read is a sign of life.
type counted struct {
	io.ReadCloser

	alive  func()
	end    func() // nil if it has no end of its own
	failed func(error) error
	limit  bool // left is what may still be read
	left   int64
}

func (c *counted) Read(to []byte) (int, error) {
	n, err := c.ReadCloser.Read(to)
	if n > 0 {
		c.alive()
	}
	if c.left -= int64(n); c.limit && c.left < 0 {
		return 0, errLarge
	}
	if err != nil && !errors.Is(err, io.EOF) {
		err = c.failed(err)
	}
	return n, err
}

func (c *counted) Close() error {
	if c.end != nil {
		c.end()
	}
	return c.ReadCloser.Close()
}

func isThisMachine(host string) bool {
	address := net.ParseIP(host)
	return host == "localhost" || address != nil && address.IsLoopback()
}
