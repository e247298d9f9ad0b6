package catalogserver

import (
	"context"
	"crypto/tls"
	"net"
	"net/http"
	"strconv"
	"sync"
)

const (
	// maxRequests is the number of requests that are answered at a time, and
	// maxNetworkRequests how many of one network: an IPv4 address or an IPv6 /64.
	// Each takes some 100 kB.
	maxRequests        = 128
	maxNetworkRequests = 32
	// maxHeaderFields is far above what clients and proxies send. Without it, many
	// small ones take a hundred times their size.
	maxHeaderFields = 100
	// retryAfter is what a refused client is told to wait.
	retryAfter = unusedGrace
)

// gate lets as many requests through to a handler as its bounds allow, and refuses
// others. Of those who share, it cuts replies that are not read, and those of who
// has too many.
type gate struct {
	handler http.Handler
	bounds  bounds

	mu       sync.Mutex
	answered map[*conn]struct{}
	// leaving is the number of replies that were cut and have not ended yet.
	leaving int
}

func newGate(handler http.Handler, limits bounds) *gate {
	return &gate{handler: handler, bounds: limits, answered: map[*conn]struct{}{}}
}

// ServeHTTP implements http.Handler.
func (g *gate) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	fields := 0
	for _, values := range r.Header {
		fields += len(values)
	}
	if fields > maxHeaderFields {
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusRequestHeaderFieldsTooLarge)
		return
	}
	c, ok := r.Context().Value(connKey{}).(*conn)
	if !ok {
		refuse(w, http.StatusInternalServerError)
		return
	}
	if !g.enter(c) {
		w.Header().Set("Retry-After", strconv.Itoa(int(retryAfter.Seconds())))
		w.Header().Set("Connection", "close")
		refuse(w, http.StatusServiceUnavailable)
		return
	}
	defer g.leave(c)
	g.handler.ServeHTTP(w, r)
}

// enter reports whether a request is answered, of which there is one at a time on a
// connection.
func (g *gate) enter(c *conn) bool {
	g.mu.Lock()
	defer g.mu.Unlock()
	now := clock()
	holders, places := make([]*conn, 0, len(g.answered)), make([]place, 0, len(g.answered))
	for other := range g.answered {
		holders = append(holders, other)
		places = append(places, place{peer: other.peer, unused: other.stalled(now)})
	}
	taken, ok := g.bounds.admit(places, c.peer)
	if !ok || g.leaving >= g.bounds.total {
		return false
	}
	if taken != none {
		delete(g.answered, holders[taken])
		g.leaving++
		holders[taken].cut()
	}
	g.answered[c] = struct{}{}
	return true
}

func (g *gate) leave(c *conn) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if _, whole := g.answered[c]; !whole {
		g.leaving--
		return
	}
	delete(g.answered, c)
}

// connKey is the key of a *conn in the context of its requests.
type connKey struct{}

// withConn is the http.Server.ConnContext of servers behind a lobby.
func withConn(ctx context.Context, served net.Conn) context.Context {
	if c, ok := plain(served).(*conn); ok {
		return context.WithValue(ctx, connKey{}, c)
	}
	return ctx
}

// noteState is the http.Server.ConnState of servers behind a lobby.
func noteState(served net.Conn, state http.ConnState) {
	c, ok := plain(served).(*conn)
	if !ok {
		return
	}
	switch state {
	case http.StateActive, http.StateIdle:
		c.lobby.use(c, state == http.StateActive)
	case http.StateNew, http.StateHijacked, http.StateClosed:
	}
}

// plain returns the connection below TLS.
func plain(served net.Conn) net.Conn {
	if secured, ok := served.(*tls.Conn); ok {
		return secured.NetConn()
	}
	return served
}
