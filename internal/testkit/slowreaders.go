package testkit

import (
	"bufio"
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"
)

// slowReaderBufferBytes is the receive buffer of a slow reader, so that little of a
// reply gets away.
const slowReaderBufferBytes = 4 << 10

// SlowReader is a client that asks for something, reads no further than the header
// of the reply, and stays.
type SlowReader struct {
	// From is the local address to connect from; empty for any.
	From string
	// URL is asked for, over HTTP or HTTPS with any certificate.
	URL *url.URL
	// AcceptEncoding is that header of the request.
	AcceptEncoding string
}

// Replies are what slow readers were answered with.
type Replies struct {
	mu    sync.Mutex
	conns []net.Conn
	// Status counts replies by their status; 0 stands for connections that ended
	// without one.
	Status map[int]int
	// WithoutRetryAfter counts refusals that do not say when to come again.
	WithoutRetryAfter int
}

// OpenSlowReaders has number readers ask at the same time, at most parallel of them
// without an answer, and returns when all have one, or none within patience. Those
// that got more than a refusal stay until the replies are closed.
func OpenSlowReaders(ctx context.Context, number, parallel int, patience time.Duration, reader func(i int) SlowReader) *Replies {
	replies := &Replies{Status: map[int]int{}}
	turns := make(chan struct{}, parallel)
	var all sync.WaitGroup
	for i := range number {
		turns <- struct{}{}
		all.Go(func() {
			defer func() { <-turns }()
			replies.open(ctx, patience, reader(i))
		})
	}
	all.Wait()
	return replies
}

// Close ends all readers.
func (r *Replies) Close() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, conn := range r.conns {
		_ = conn.Close() // nothing is expected of it any more
	}
	r.conns = nil
}

func (r *Replies) open(ctx context.Context, patience time.Duration, reader SlowReader) {
	ctx, cancel := context.WithTimeout(ctx, patience)
	defer cancel()
	status, retry, conn := reader.ask(ctx)
	r.mu.Lock()
	defer r.mu.Unlock()
	r.Status[status]++
	if status == http.StatusServiceUnavailable && retry == "" {
		r.WithoutRetryAfter++
	}
	if conn != nil {
		r.conns = append(r.conns, conn)
	}
}

// ask returns the status of the reply and its Retry-After, and a connection on which
// the rest of it waits.
func (s SlowReader) ask(ctx context.Context) (status int, retry string, conn net.Conn) {
	conn, err := s.connect(ctx)
	if err != nil {
		return 0, "", nil
	}
	response, err := s.send(ctx, conn)
	if err != nil {
		_ = conn.Close()
		return 0, "", nil
	}
	_ = response.Body // it is not read: that is what a slow reader does
	if response.StatusCode != http.StatusOK {
		_ = conn.Close()
		conn = nil
	}
	return response.StatusCode, response.Header.Get("Retry-After"), conn
}

func (s SlowReader) connect(ctx context.Context) (net.Conn, error) {
	dialer := &net.Dialer{}
	if s.From != "" {
		dialer.LocalAddr = &net.TCPAddr{IP: net.ParseIP(s.From)}
	}
	conn, err := dialer.DialContext(ctx, "tcp", s.URL.Host)
	if err != nil {
		return nil, err
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		err = tcp.SetReadBuffer(slowReaderBufferBytes)
	}
	if s.URL.Scheme == "https" && err == nil {
		secured := tls.Client(conn, &tls.Config{InsecureSkipVerify: true})
		if err = secured.HandshakeContext(ctx); err == nil {
			return secured, nil
		}
	}
	if err != nil {
		_ = conn.Close()
		return nil, err
	}
	return conn, nil
}

func (s SlowReader) send(ctx context.Context, conn net.Conn) (*http.Response, error) {
	if deadline, ok := ctx.Deadline(); ok {
		if err := conn.SetDeadline(deadline); err != nil {
			return nil, err
		}
	}
	_, err := fmt.Fprintf(conn, "GET %s HTTP/1.1\r\nHost: %s\r\nAccept-Encoding: %s\r\n\r\n", s.URL.RequestURI(), s.URL.Host, s.AcceptEncoding)
	if err != nil {
		return nil, err
	}
	response, err := http.ReadResponse(bufio.NewReaderSize(conn, 1), nil)
	if err != nil {
		return nil, err
	}
	return response, conn.SetDeadline(time.Time{})
}
