package catalogserver

import (
	"errors"
	"net"
	"sync/atomic"
	"time"
)

const (
	// sendBufferBytes and receiveBufferBytes are what the kernel is told to hold of a
	// connection that is served, and waitingBufferBytes of one that waits: enough for
	// the beginning of a TLS handshake. It takes up to twice as much.
	sendBufferBytes    = 128 << 10
	receiveBufferBytes = 64 << 10
	waitingBufferBytes = 4 << 10
	// pieceBytes is what is sent at a time, and pieceTimeout how long that may take:
	// who reads less than a kilobyte a second does not get the rest.
	pieceBytes   = 32 << 10
	pieceTimeout = 30 * time.Second
)

// clock is that of the deadlines of connections.
func clock() time.Time { return time.Now() } //nolint:forbidigo // the kernel has no other

// conn is a connection to a server.
type conn struct {
	net.Conn

	peer  peer
	lobby *lobby

	// arrival is its number among those that waited, and active says that it has a
	// request. The lobby guards them.
	arrival int64
	active  bool

	// deadline is that of the whole reply, and reading and writing are when the read
	// and the write began that go on; in nanoseconds of Unix time, zero for none.
	deadline, reading, writing atomic.Int64
}

func newConn(accepted net.Conn, l *lobby) *conn {
	if tcp, ok := accepted.(*net.TCPConn); ok {
		// Without, the buffers are as large as the kernel likes; it is no error.
		_ = tcp.SetWriteBuffer(sendBufferBytes)
		_ = tcp.SetReadBuffer(waitingBufferBytes)
	}
	return &conn{Conn: accepted, lobby: l, peer: peerAt(accepted.RemoteAddr())}
}

// served says that the connection no longer waits.
func (c *conn) served() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		_ = tcp.SetReadBuffer(receiveBufferBytes) // as above
	}
}

// Read implements net.Conn.
func (c *conn) Read(p []byte) (int, error) {
	c.reading.Store(clock().UnixNano())
	defer c.reading.Store(0)
	return c.Conn.Read(p)
}

// Write implements net.Conn.
func (c *conn) Write(p []byte) (int, error) {
	written := 0
	for {
		piece := p[written:min(written+pieceBytes, len(p))]
		n, err := c.writePiece(piece)
		written += n
		if err != nil || written == len(p) {
			return written, err
		}
	}
}

func (c *conn) writePiece(p []byte) (int, error) {
	now := clock()
	c.writing.Store(now.UnixNano())
	defer c.writing.Store(0)
	deadline := now.Add(pieceTimeout)
	if whole := c.deadline.Load(); whole != 0 && whole < deadline.UnixNano() {
		deadline = time.Unix(0, whole)
	}
	if err := c.Conn.SetWriteDeadline(deadline); err != nil {
		return 0, err
	}
	return c.Conn.Write(p)
}

// SetWriteDeadline implements net.Conn. It holds from the next write on.
func (c *conn) SetWriteDeadline(t time.Time) error {
	if t.IsZero() {
		c.deadline.Store(0)
	} else {
		c.deadline.Store(t.UnixNano())
	}
	return nil
}

// SetDeadline implements net.Conn.
func (c *conn) SetDeadline(t time.Time) error {
	if err := c.SetWriteDeadline(t); err != nil {
		return err
	}
	return c.SetReadDeadline(t)
}

// silent returns for how long the peer has sent nothing that is waited for.
func (c *conn) silent(now time.Time) time.Duration { return since(&c.reading, now) }

// stalled returns for how long the peer has taken nothing of what is sent to it.
func (c *conn) stalled(now time.Time) time.Duration { return since(&c.writing, now) }

// since returns the time since something began that goes on.
func since(begin *atomic.Int64, now time.Time) time.Duration {
	nanoseconds := begin.Load()
	if nanoseconds == 0 {
		return 0
	}
	return now.Sub(time.Unix(0, nanoseconds))
}

// CloseWrite tells the peer that nothing more is sent. A server does so before it
// closes a connection on which there is more to read, or its last reply would be lost.
func (c *conn) CloseWrite() error {
	half, ok := c.Conn.(interface{ CloseWrite() error })
	if !ok {
		return errors.ErrUnsupported
	}
	return half.CloseWrite()
}

// Close implements net.Conn.
func (c *conn) Close() error {
	c.lobby.leave(c)
	return c.Conn.Close()
}

// cut closes the connection at once: what was sent and not received yet is dropped.
func (c *conn) cut() {
	if tcp, ok := c.Conn.(*net.TCPConn); ok {
		// If it fails, the rest takes memory of the kernel for some time.
		_ = tcp.SetLinger(0)
	}
	_ = c.Close() // it is of no use to anybody
}
