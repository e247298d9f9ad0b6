package catalogserver

import (
	"errors"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"
)

// listen returns a lobby on an address of this host.
func listen(t *testing.T, limits bounds, waiting int) *lobby {
	t.Helper()
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	l := newLobby(listener, limits, waiting)
	t.Cleanup(func() { _ = l.Close() })
	return l
}

// connect connects from an address, and returns when the lobby has the connection.
func connect(t *testing.T, l *lobby, from string) net.Conn {
	t.Helper()
	l.mu.Lock()
	before := l.arrivals
	l.mu.Unlock()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	conn, err := dialer.DialContext(t.Context(), "tcp", l.Addr().String())
	if err != nil {
		t.Skip("this host has one loopback address only: ", err)
	}
	t.Cleanup(func() { _ = conn.Close() })
	for {
		l.mu.Lock()
		arrived := l.arrivals > before
		l.mu.Unlock()
		if arrived {
			return conn
		}
		time.Sleep(time.Millisecond)
	}
}

// accepted returns the next connection that is served.
func accepted(t *testing.T, l *lobby) *conn {
	t.Helper()
	got, err := l.Accept()
	if err != nil {
		t.Fatal(err)
	}
	c, ok := got.(*conn)
	if !ok {
		t.Fatalf("got a %T", got)
	}
	t.Cleanup(func() { _ = c.Close() })
	return c
}

// isCut waits until a connection has ended.
func isCut(t *testing.T, conn net.Conn) {
	t.Helper()
	if n, err := conn.Read(make([]byte, 1)); n != 0 || err == nil {
		t.Errorf("got %d bytes, %v", n, err)
	}
}

// Who fills all places and has many waiting does not keep out others: they come
// first, and get places that it does not use.
func TestLobbyIsFair(t *testing.T) {
	t.Parallel()
	const many, other = "127.0.0.2", "127.0.0.3"
	l := listen(t, bounds{total: 2, perNetwork: 2, grace: time.Hour}, 10)
	connect(t, l, many)
	connect(t, l, many)
	first, second := accepted(t, l), accepted(t, l)
	l.use(first, true)
	connect(t, l, many)
	connect(t, l, many)
	connect(t, l, other)
	if got := accepted(t, l); got.peer != of(other) {
		t.Errorf("got a connection of %v", got.peer)
	}
	if _, err := second.Read(make([]byte, 1)); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v from the connection without a request", err)
	}
	// Who comes from there again waits until a request has been answered.
	held := make(chan *conn)
	go func() {
		next, _ := l.Accept()
		c, _ := next.(*conn)
		held <- c
	}()
	l.use(first, false)
	if err := first.Close(); err != nil {
		t.Error(err)
	}
	if got := <-held; got == nil || got.peer != of(many) {
		t.Errorf("got %v", got)
	}
}

// A connection on which nothing comes loses its place to another one from the same
// address.
func TestLobbyTakesSilentConnections(t *testing.T) {
	t.Parallel()
	l := listen(t, bounds{total: 1, perNetwork: 1, grace: time.Nanosecond}, 10)
	silent := connect(t, l, "127.0.0.2")
	c := accepted(t, l)
	go func() { _, _ = c.Read(make([]byte, 1)) }()
	connect(t, l, "127.0.0.2")
	if got := accepted(t, l); got == c {
		t.Error("got the same connection again")
	}
	isCut(t, silent)
}

// The number that waits is bounded, and who has most of them loses.
func TestLobbyBoundsWhatWaits(t *testing.T) {
	t.Parallel()
	const many, other = "127.0.0.2", "127.0.0.3"
	l := listen(t, bounds{total: 1, perNetwork: 1, grace: time.Hour}, 2)
	connect(t, l, many)
	l.use(accepted(t, l), true)
	connect(t, l, many)
	last := connect(t, l, many)
	connect(t, l, other)
	isCut(t, last)
	isCut(t, connect(t, l, other))
	waiting := 0
	for _, conns := range l.waiting {
		waiting += len(conns)
	}
	if waiting != 2 || len(l.waiting[of(many)]) != 1 {
		t.Errorf("%d connections wait: %v", waiting, l.waiting)
	}
	if err := l.Close(); err != nil {
		t.Error(err)
	}
	if _, err := l.Accept(); !errors.Is(err, net.ErrClosed) {
		t.Errorf("got %v from a lobby that is closed", err)
	}
}

// recorder is a connection that notes what it is told.
type recorder struct {
	net.Conn

	writes    []int
	deadlines []time.Time
}

func (r *recorder) RemoteAddr() net.Addr { return &net.UnixAddr{} }
func (r *recorder) SetWriteDeadline(t time.Time) error {
	r.deadlines = append(r.deadlines, t)
	return nil
}

func (r *recorder) Write(p []byte) (int, error) {
	r.writes = append(r.writes, len(p))
	return len(p), nil
}

// Every piece of a reply has a time of its own, within that of the whole.
func TestWritesHaveAMinimumRate(t *testing.T) {
	t.Parallel()
	for name, tt := range map[string]struct{ whole, want time.Duration }{
		"no bound on the whole": {0, pieceTimeout},
		"a distant bound":       {time.Hour, pieceTimeout},
		"a near bound":          {time.Second, time.Second},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			sent := &recorder{}
			c := newConn(sent, nil)
			began := time.Now()
			if tt.whole > 0 {
				if err := c.SetWriteDeadline(began.Add(tt.whole)); err != nil {
					t.Fatal(err)
				}
			}
			if n, err := c.Write(make([]byte, 2*pieceBytes+1)); n != 2*pieceBytes+1 || err != nil {
				t.Errorf("got %d, %v", n, err)
			}
			latest := time.Now().Add(tt.want)
			if len(sent.writes) != 3 || len(sent.deadlines) != 3 {
				t.Fatalf("got writes %v with deadlines %v", sent.writes, sent.deadlines)
			}
			for i, deadline := range sent.deadlines {
				if deadline.Before(began.Add(tt.want)) || deadline.After(latest) || sent.writes[i] > pieceBytes {
					t.Errorf("%d bytes may take until %s", sent.writes[i], deadline.Sub(began))
				}
			}
		})
	}
}

// pass has a request of a connection from that address come to a gate.
func pass(t *testing.T, g *gate, l *lobby, from string) (c *conn, ok bool) {
	t.Helper()
	ours, theirs := net.Pipe()
	t.Cleanup(func() { _ = ours.Close(); _ = theirs.Close() })
	c = &conn{Conn: theirs, lobby: l, peer: of(from)}
	return c, g.enter(c)
}

// Replies that were cut count until they have ended.
func TestGateCountsWhatItCut(t *testing.T) {
	t.Parallel()
	l := &lobby{changed: make(chan struct{}, 1)}
	g := newGate(nil, bounds{total: 2, perNetwork: 2})
	var cut []*conn
	var all []*conn
	for _, from := range []string{"10.0.0.1", "10.0.0.2", "10.0.0.3", "10.0.0.4"} {
		c, ok := pass(t, g, l, from)
		if !ok {
			t.Errorf("%s does not get a place", from)
		}
		all = append(all, c)
	}
	for _, c := range all {
		if _, whole := g.answered[c]; !whole {
			cut = append(cut, c)
		}
	}
	if len(cut) != 2 {
		t.Fatalf("%d requests were cut", len(cut))
	}
	for _, c := range cut {
		if _, err := c.Write([]byte{1}); !errors.Is(err, io.ErrClosedPipe) {
			t.Errorf("got %v from a reply that should be cut", err)
		}
	}
	if _, ok := pass(t, g, l, "10.0.0.5"); ok {
		t.Error("more is under way than there are places")
	}
	g.leave(cut[0])
	if _, ok := pass(t, g, l, "10.0.0.5"); !ok {
		t.Error("a place that is free is not given")
	}
	g.leave(cut[1])
	if len(g.answered) != 2 || g.leaving != 1 {
		t.Errorf("%d requests are answered, and %d are leaving", len(g.answered), g.leaving)
	}
}

// serveHeld runs a server whose handler has requests wait until the test ends, and
// returns its lobby.
func serveHeld(t *testing.T, limits bounds) *lobby {
	t.Helper()
	held := make(chan struct{})
	handler := newGate(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path == "/held" {
			w.WriteHeader(http.StatusOK)
			_ = http.NewResponseController(w).Flush()
			<-held
		}
	}), limits)
	l := listen(t, openBounds, maxWaiting)
	server := newHTTPServer(handler)
	ended := make(chan error, 1)
	go func() { ended <- serve(server, l) }()
	t.Cleanup(func() {
		close(held)
		if err := errors.Join(server.Close(), <-ended); err != nil {
			t.Error(err)
		}
	})
	return l
}

// ask asks a server from an address for a path, and returns the reply.
func ask(t *testing.T, l *lobby, from, path string) *http.Response {
	t.Helper()
	dialer := net.Dialer{LocalAddr: &net.TCPAddr{IP: net.ParseIP(from)}}
	transport := &http.Transport{DialContext: dialer.DialContext}
	t.Cleanup(transport.CloseIdleConnections)
	r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	response, err := transport.RoundTrip(r)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = response.Body.Close() })
	return response
}

// While somebody holds all that one may have, they are told when to come again, and
// others are answered. While all places are held, who has none gets one of who has
// most.
func TestGateIsFair(t *testing.T) {
	t.Parallel()
	l := serveHeld(t, bounds{total: 3, perNetwork: 2, grace: time.Hour})
	const many, other, third = "127.0.0.2", "127.0.0.3", "127.0.0.4"
	var held []*http.Response
	for range 2 {
		held = append(held, ask(t, l, many, "/held"))
	}
	refused := ask(t, l, many, "/")
	if refused.StatusCode != http.StatusServiceUnavailable || refused.Header.Get("Retry-After") != "1" || !refused.Close {
		t.Errorf("got %s, %v", refused.Status, refused.Header)
	}
	for range 10 {
		if got := ask(t, l, other, "/"); got.StatusCode != http.StatusOK {
			t.Errorf("got %s for another one", got.Status)
		}
	}
	if got := ask(t, l, other, "/held"); got.StatusCode != http.StatusOK {
		t.Errorf("got %s for another one", got.Status)
	}
	if got := ask(t, l, third, "/held"); got.StatusCode != http.StatusOK {
		t.Errorf("got %s when all places are held", got.Status)
	}
	cut := make(chan int, len(held))
	for i, response := range held {
		go func() {
			_, _ = response.Body.Read(make([]byte, 1))
			cut <- i
		}()
	}
	<-cut
}

// A request with more header fields than any needs is refused, however short they are.
func TestGateBoundsHeaderFields(t *testing.T) {
	t.Parallel()
	g := newGate(nil, requestBounds)
	for name, fields := range map[string]http.Header{
		"many names":  {},
		"many values": {"X": make([]string, maxHeaderFields+1)},
	} {
		for i := range maxHeaderFields + 1 {
			if name == "many names" {
				fields.Set(string(rune('a'+i%26))+string(rune('a'+i/26)), "")
			}
		}
		r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, "/", nil)
		r.Header = fields
		answer := httptest.NewRecorder()
		g.ServeHTTP(answer, r)
		if answer.Code != http.StatusRequestHeaderFieldsTooLarge {
			t.Errorf("%s: got status %d", name, answer.Code)
		}
	}
}
