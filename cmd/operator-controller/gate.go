package main

import (
	"errors"
	"net/http"
	"sync/atomic"

	"k8s.io/client-go/rest"
)

// errNoLonger is why a request of a manager that has ended is not sent.
var errNoLonger = errors.New("this replica no longer acts, and nothing is sent for what it has begun")

// gate is what all requests of one manager go through. Most of them end with the context
// of the manager. Some have to outlive that, such as the record of a release that is being
// written. Once another replica may act, those have to end too.
type gate struct{ closed atomic.Bool }

// behind is a connection whose requests go through the gate.
func (g *gate) behind(config *rest.Config) *rest.Config {
	config = rest.CopyConfig(config)
	config.Wrap(func(next http.RoundTripper) http.RoundTripper { return gated{gate: g, next: next} })
	return config
}

// close lets no request through any more. Those that are under way go on.
func (g *gate) close() { g.closed.Store(true) }

type gated struct {
	gate *gate
	next http.RoundTripper
}

// RoundTrip implements [http.RoundTripper].
func (t gated) RoundTrip(req *http.Request) (*http.Response, error) {
	if !t.gate.closed.Load() {
		return t.next.RoundTrip(req)
	}
	if req.Body != nil {
		_ = req.Body.Close()
	}
	return nil, errNoLonger
}

// WrappedRoundTripper lets client-go find the transport below.
func (t gated) WrappedRoundTripper() http.RoundTripper { return t.next }
