package catalogserver

import (
	"net"
	"syscall"
	"testing"
)

// What the kernel holds of connections counts as memory of the container.
func TestSocketBuffersAreBounded(t *testing.T) {
	t.Parallel()
	l := listen(t, bounds{total: 1, perNetwork: 1}, 10)
	connect(t, l, "127.0.0.2")
	c := accepted(t, l)
	waiting := connect(t, l, "127.0.0.3")
	l.mu.Lock()
	other := l.waiting[peerAt(waiting.LocalAddr())][0]
	l.mu.Unlock()
	// The kernel doubles what it is told, for its own needs.
	for _, tt := range []struct {
		name         string
		conn         *conn
		option, want int
	}{
		{"sending", c, syscall.SO_SNDBUF, 2 * sendBufferBytes},
		{"receiving", c, syscall.SO_RCVBUF, 2 * receiveBufferBytes},
		{"waiting", other, syscall.SO_RCVBUF, 2 * waitingBufferBytes},
	} {
		if got := option(t, tt.conn, tt.option); got > tt.want {
			t.Errorf("%s: the kernel holds %d bytes, want at most %d", tt.name, got, tt.want)
		}
	}
}

func option(t *testing.T, c *conn, name int) int {
	t.Helper()
	tcp, ok := c.Conn.(*net.TCPConn)
	if !ok {
		t.Fatalf("got a %T", c.Conn)
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	var value int
	var optionErr error
	if err := raw.Control(func(fd uintptr) {
		value, optionErr = syscall.GetsockoptInt(int(fd), syscall.SOL_SOCKET, name)
	}); err != nil || optionErr != nil {
		t.Fatal(err, optionErr)
	}
	return value
}
