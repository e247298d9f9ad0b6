package catalogserver

import (
	"bufio"
	"errors"
	"io"
	"net"
	"net/http"
	"testing"
	"testing/synctest"
	"time"
)

// pipes is a listener with one connection.
type pipes struct{ accepted, closed chan net.Conn }

func (p pipes) Accept() (net.Conn, error) {
	select {
	case connection := <-p.accepted:
		return connection, nil
	case <-p.closed:
		return nil, http.ErrServerClosed
	}
}

func (p pipes) Close() error {
	close(p.closed)
	return nil
}

func (pipes) Addr() net.Addr { return &net.TCPAddr{} }

// TestClientsHaveTheirTime: who sends nothing, asks nothing more or reads nothing
// loses its connection.
func TestClientsHaveTheirTime(t *testing.T) {
	t.Parallel()
	ask := func(t *testing.T, client net.Conn) *bufio.Reader {
		t.Helper()
		if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: c\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		return bufio.NewReader(client)
	}
	tests := map[string]struct {
		do   func(t *testing.T, client net.Conn)
		want time.Duration
	}{
		"a request that is never whole": {
			do: func(t *testing.T, client net.Conn) {
				t.Helper()
				if _, err := io.WriteString(client, "GET / HTTP/1.1\r\nHost: c\r\n"); err != nil {
					t.Error(err)
				}
			},
			want: readTimeout,
		},
		"no request after the first": {
			do: func(t *testing.T, client net.Conn) {
				t.Helper()
				reply, err := http.ReadResponse(ask(t, client), nil)
				if err != nil {
					t.Fatal(err)
				}
				if n, err := io.Copy(io.Discard, reply.Body); err != nil || n == 0 {
					t.Errorf("%d bytes, %v", n, err)
				}
				_ = reply.Body.Close()
			},
			want: idleTimeout,
		},
		"a reply that is not read": {
			do:   func(t *testing.T, client net.Conn) { t.Helper(); ask(t, client) },
			want: writeTimeout,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			synctest.Test(t, func(t *testing.T) {
				listener := pipes{make(chan net.Conn, 1), make(chan net.Conn)}
				srv := newHTTPServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write(make([]byte, 1<<20)) }))
				served := make(chan error)
				go func() { served <- serve(srv, listener) }()
				client, server := net.Pipe()
				connection := &watched{Conn: server, closed: make(chan struct{})}
				listener.accepted <- connection
				tc.do(t, client)
				began := time.Now()
				<-connection.closed
				if took := time.Since(began); took != tc.want {
					t.Errorf("the connection was kept for %s, want %s", took, tc.want)
				}
				if err := errors.Join(srv.Close(), <-served, client.Close()); err != nil {
					t.Error(err)
				}
			})
		})
	}
}

// watched tells when a connection is closed.
type watched struct {
	net.Conn

	closed chan struct{}
}

func (w *watched) Close() error {
	select {
	case <-w.closed:
	default:
		close(w.closed)
	}
	return w.Conn.Close()
}
