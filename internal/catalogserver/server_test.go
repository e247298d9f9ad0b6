package catalogserver_test

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"io"
	"math/big"
	"net"
	"net/http"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// start runs a server until the test ends and returns its address.
func start(t *testing.T, cfg catalogserver.ServerConfig) string {
	t.Helper()
	cfg.Address = "127.0.0.1:0"
	s, err := catalogserver.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if s.Check(nil) == nil || s.Addr() != nil {
		t.Error("the server says it listens before it is started")
	}
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- s.Start(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Errorf("server ended with %v", err)
		}
		if s.Check(nil) == nil {
			t.Error("the server says it listens after it ended")
		}
	})
	var addr net.Addr
	eventually(t, func() bool { addr = s.Addr(); return addr != nil && s.Check(nil) == nil })
	return addr.String()
}

func eventually(t *testing.T, condition func() bool) {
	t.Helper()
	testkit.Await(t, 30*time.Second, "waiting", condition)
}

func TestServerFinishesReplies(t *testing.T) {
	t.Parallel()
	entered, proceed := make(chan struct{}), make(chan struct{})
	s, err := catalogserver.NewServer(catalogserver.ServerConfig{
		Address: "127.0.0.1:0",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			close(entered)
			<-proceed
			_, _ = io.WriteString(w, "done")
		}),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	eventually(t, func() bool { return s.Addr() != nil })
	address := s.Addr().String()
	replied := make(chan string, 1)
	go func() { replied <- fetch(t, http.DefaultClient, "http://"+address) }()
	<-entered
	cancel()
	close(proceed)
	if got := <-replied; got != "done" {
		t.Errorf("got reply %q", got)
	}
	if err := <-ended; err != nil {
		t.Errorf("server ended with %v", err)
	}
}

// B-50 for the other side: a renewed certificate is used without a restart.
func TestServerUsesTheCurrentCertificate(t *testing.T) {
	t.Parallel()
	trusted := x509.NewCertPool()
	var current atomic.Pointer[tls.Certificate]
	address := start(t, catalogserver.ServerConfig{
		GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if now := current.Load(); now != nil {
				return now, nil
			}
			return nil, errors.New("none yet")
		},
		Handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Proto) }),
	})
	serial := func() int64 {
		conn, err := (&tls.Dialer{Config: &tls.Config{RootCAs: trusted}}).DialContext(t.Context(), "tcp", address)
		if err != nil {
			return 0
		}
		defer conn.Close()
		return conn.(*tls.Conn).ConnectionState().PeerCertificates[0].SerialNumber.Int64()
	}
	if got := serial(); got != 0 {
		t.Errorf("got certificate %d before there is one", got)
	}
	current.Store(newCertificate(t, trusted, 1))
	if got := serial(); got != 1 {
		t.Errorf("got certificate %d", got)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, ForceAttemptHTTP2: true}}
	t.Cleanup(client.CloseIdleConnections)
	if got := fetch(t, client, "https://"+address); got != "HTTP/1.1" {
		t.Errorf("got protocol %q", got)
	}
	current.Store(newCertificate(t, trusted, 2))
	if got := serial(); got != 2 {
		t.Errorf("got certificate %d", got)
	}
}

func TestServersThatCannotStart(t *testing.T) {
	t.Parallel()
	if _, err := catalogserver.NewServer(catalogserver.ServerConfig{}); err == nil {
		t.Error("no error without a handler")
	}
	s, err := catalogserver.NewServer(catalogserver.ServerConfig{Handler: http.NotFoundHandler(), Address: "256.0.0.1:http"})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Start(t.Context()); err == nil {
		t.Error("no error without an address")
	}
}

func fetch(t *testing.T, client *http.Client, url string) string {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Error(err)
		return ""
	}
	resp, err := client.Do(req)
	if err != nil {
		t.Error(err)
		return ""
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Error(err)
	}
	return string(body)
}

// newCertificate returns a certificate that trusted trusts.
func newCertificate(t *testing.T, trusted *x509.CertPool, serial int64) *tls.Certificate {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(serial), IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
		NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	leaf, err := x509.ParseCertificate(der)
	if err != nil {
		t.Fatal(err)
	}
	trusted.AddCert(leaf)
	return &tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key, Leaf: leaf}
}

// A server that drains answers, and has its clients connect anew the next time.
func TestDrain(t *testing.T) {
	t.Parallel()
	s, err := catalogserver.NewServer(catalogserver.ServerConfig{
		Address: "127.0.0.1:0",
		Handler: http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "content") }),
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Start(ctx) }()
	eventually(t, func() bool { return s.Addr() != nil })
	through := &http.Client{Transport: &http.Transport{}}
	t.Cleanup(through.CloseIdleConnections)
	for i, drained := range []bool{false, false, true, true} {
		if drained {
			s.Drain()
		}
		request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+s.Addr().String(), http.NoBody)
		if err != nil {
			t.Fatal(err)
		}
		response, err := through.Do(request)
		if err != nil {
			t.Fatal(err)
		}
		content, err := io.ReadAll(response.Body)
		if err := errors.Join(err, response.Body.Close()); err != nil || string(content) != "content" || response.Close != drained {
			t.Errorf("request %d: got %q, %v, the connection is closed: %t", i, content, err, response.Close)
		}
	}
	cancel()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
