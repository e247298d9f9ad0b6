package catalogserver

import (
	"cmp"
	"errors"
	"net"
	"sync"
	"time"
)

const (
	// maxOpen is the number of connections that are served, a TLS handshake or the
	// wait for a request included. Each takes some 50 kB.
	maxOpen = 512
	// maxWaiting is the number of connections that wait to be served. Nothing is read
	// from them, so each takes about a kilobyte.
	maxWaiting = 4096
	// unusedGrace is for how long a connection may be without a request, or a reply
	// without being read, while others wait for its place.
	unusedGrace = time.Second
	// lobbyInterval is how often it is looked for connections that are unused by now.
	lobbyInterval = 100 * time.Millisecond
	// acceptPause is the wait after a failure, such as too many open files.
	acceptPause = 50 * time.Millisecond
)

// lobby is a listener in front of a server. It takes connections at once, has most of
// them wait, and hands them to the server as its bounds allow: first those of who has
// fewest. It takes connections without a request away from who has too many.
type lobby struct {
	net.Listener

	bounds     bounds
	maxWaiting int
	// changed has a value when there may be something to hand out.
	changed chan struct{}

	mu   sync.Mutex
	open map[*conn]struct{}
	// waiting has connections in the order in which they came, and arrivals counts
	// all that ever waited.
	waiting  map[peer][]*conn
	arrivals int64
	failure  error
}

// newLobby returns a listener for what listener accepts, which it does until that is
// closed.
func newLobby(listener net.Listener, limits bounds, waiting int) *lobby {
	l := &lobby{
		Listener: listener, bounds: limits, maxWaiting: waiting, changed: make(chan struct{}, 1),
		open: map[*conn]struct{}{}, waiting: map[peer][]*conn{},
	}
	go l.receive()
	return l
}

// receive takes connections until the listener fails.
func (l *lobby) receive() {
	for {
		accepted, err := l.Listener.Accept()
		var temporary interface{ Temporary() bool }
		switch {
		case err == nil:
			l.arrive(newConn(accepted, l))
		case errors.As(err, &temporary) && temporary.Temporary():
			time.Sleep(acceptPause)
		default:
			l.end(err)
			return
		}
	}
}

// arrive has a connection wait. When too many do, the last one goes of who has most.
func (l *lobby) arrive(c *conn) {
	l.mu.Lock()
	most, number := c.peer, 0
	for p, waiting := range l.waiting {
		number += len(waiting)
		if len(waiting) > len(l.waiting[most]) {
			most = p
		}
	}
	l.arrivals++
	c.arrival = l.arrivals
	l.waiting[c.peer] = append(l.waiting[c.peer], c)
	var surplus *conn
	if number >= l.maxWaiting {
		last := len(l.waiting[most]) - 1
		surplus = l.waiting[most][last]
		l.remove(most, last)
	}
	l.mu.Unlock()
	if surplus != nil {
		surplus.cut()
	}
	l.change()
}

// remove takes a connection from those that wait.
func (l *lobby) remove(p peer, i int) {
	if len(l.waiting[p]) == 1 {
		delete(l.waiting, p)
		return
	}
	l.waiting[p] = append(l.waiting[p][:i:i], l.waiting[p][i+1:]...)
}

// end has Accept fail, and closes what waits.
func (l *lobby) end(err error) {
	l.mu.Lock()
	l.failure = err
	waiting := l.waiting
	l.waiting = nil
	l.mu.Unlock()
	for _, conns := range waiting {
		for _, c := range conns {
			c.cut()
		}
	}
	l.change()
}

func (l *lobby) change() {
	select {
	case l.changed <- struct{}{}:
	default:
	}
}

// Accept implements net.Listener, for one caller at a time.
func (l *lobby) Accept() (net.Conn, error) {
	for {
		next, waits, err := l.next()
		if err != nil {
			return nil, err
		}
		if next != nil {
			return next, nil
		}
		var again <-chan time.Time
		if waits {
			again = time.After(lobbyInterval)
		}
		select {
		case <-l.changed:
		case <-again:
		}
	}
}

// next returns a connection to be served, or whether one waits that cannot be yet.
func (l *lobby) next() (next *conn, waits bool, err error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.failure != nil {
		return nil, false, l.failure
	}
	if len(l.waiting) == 0 {
		return nil, false, nil
	}
	holders, places := l.places()
	next = l.first(count(places))
	taken, ok := l.bounds.admit(places, next.peer)
	if !ok {
		return nil, true, nil
	}
	if taken != none {
		delete(l.open, holders[taken])
		// It tells the lobby that it is closed.
		go holders[taken].cut()
	}
	l.remove(next.peer, 0)
	next.served()
	l.open[next] = struct{}{}
	return next, false, nil
}

// places returns the connections that are served, and their places.
func (l *lobby) places() ([]*conn, []place) {
	now := clock()
	holders, places := make([]*conn, 0, len(l.open)), make([]place, 0, len(l.open))
	for c := range l.open {
		holders = append(holders, c)
		places = append(places, place{peer: c.peer, unused: c.silent(now), kept: c.active})
	}
	return holders, places
}

// first returns the connection to be served before the others that wait.
func (l *lobby) first(have shares) *conn {
	var first *conn
	for _, waiting := range l.waiting {
		c := waiting[0]
		if first == nil || cmp.Or(
			cmp.Compare(have.byNetwork[c.peer.network], have.byNetwork[first.peer.network]),
			cmp.Compare(have.byAddress[c.peer.address], have.byAddress[first.peer.address]),
			cmp.Compare(c.arrival, first.arrival),
		) < 0 {
			first = c
		}
	}
	return first
}

// use notes whether a connection has a request.
func (l *lobby) use(c *conn, active bool) {
	l.mu.Lock()
	c.active = active
	l.mu.Unlock()
	if !active {
		l.change()
	}
}

// leave ends the service of a connection.
func (l *lobby) leave(c *conn) {
	l.mu.Lock()
	delete(l.open, c)
	l.mu.Unlock()
	l.change()
}
