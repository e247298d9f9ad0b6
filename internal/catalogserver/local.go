package catalogserver

import (
	"context"
	"net"
	"net/http"
	"net/url"
	"strings"
	"sync"
)

// Transport returns a transport that has the server itself answer requests for
// catalogs below the URL external, which is that of all replicas. They take none of
// the places that clients share, so that nobody can keep this process from reading
// its own catalogs. What this replica does not have, and everything else, goes through
// next.
func (s *Server) Transport(external *url.URL, next http.RoundTripper) http.RoundTripper {
	return &localTransport{
		external: external, next: next,
		local: &http.Transport{DialContext: s.local.dial, DisableCompression: true, DisableKeepAlives: true},
	}
}

// localTransport is the transport that Server.Transport returns.
type localTransport struct {
	external *url.URL
	local    *http.Transport
	next     http.RoundTripper
}

// RoundTrip implements http.RoundTripper.
func (t *localTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	path, ok := strings.CutPrefix(r.URL.Path, strings.TrimSuffix(t.external.Path, "/")+"/catalogs/")
	if !ok || r.Method != http.MethodGet || r.URL.Scheme != t.external.Scheme || r.URL.Host != t.external.Host {
		return t.next.RoundTrip(r)
	}
	local := r.Clone(r.Context())
	local.URL = &url.URL{Scheme: "http", Host: "local", Path: "/catalogs/" + path, RawQuery: r.URL.RawQuery}
	response, err := t.local.RoundTrip(local)
	if err != nil {
		// The server does not listen any more, or the request is over.
		return t.next.RoundTrip(r)
	}
	if response.StatusCode == http.StatusNotFound {
		_ = response.Body.Close() // there is nothing in it
		return t.next.RoundTrip(r)
	}
	response.Request = r
	return response, nil
}

// inProcess is a listener for connections that come from this process.
type inProcess struct {
	dialed chan net.Conn
	closed chan struct{}
	once   sync.Once
}

func newInProcess() *inProcess {
	return &inProcess{dialed: make(chan net.Conn), closed: make(chan struct{})}
}

// dial connects to the listener, and waits until that accepts. The network and the
// address mean nothing.
func (l *inProcess) dial(ctx context.Context, _, _ string) (net.Conn, error) {
	ours, theirs := net.Pipe()
	select {
	case l.dialed <- theirs:
		return ours, nil
	case <-l.closed:
		return nil, net.ErrClosed
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// Accept implements net.Listener.
func (l *inProcess) Accept() (net.Conn, error) {
	select {
	case conn := <-l.dialed:
		return conn, nil
	case <-l.closed:
		return nil, net.ErrClosed
	}
}

// Close implements net.Listener.
func (l *inProcess) Close() error {
	l.once.Do(func() { close(l.closed) })
	return nil
}

// Addr implements net.Listener.
func (l *inProcess) Addr() net.Addr { return &net.UnixAddr{Name: "local", Net: "pipe"} }
