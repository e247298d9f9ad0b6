package catalogserver_test

import (
	"bytes"
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
)

func TestHandler(t *testing.T) {
	t.Parallel()
	s := openStore(t, catalogserver.StoreConfig{Dir: t.TempDir()})
	put(t, s, "c", "1", files(map[string]string{"a": objectP}))
	const modified = "Sat, 01 Aug 2026 12:00:00 GMT"
	tests := map[string]struct {
		method, path string
		header       map[string]string
		status       int
		body         string
		want         map[string]string
	}{
		"content": {
			path: "/catalogs/c/api/v1/all", status: 200, body: objectP,
			want: map[string]string{"Content-Type": "application/jsonl", "Last-Modified": modified, "Accept-Ranges": "bytes", "Content-Length": "36"},
		},
		"parameters are ignored": {path: "/catalogs/c/api/v1/all?schema=x", status: 200, body: objectP},
		"head": {
			method: http.MethodHead, path: "/catalogs/c/api/v1/all", status: 200,
			want: map[string]string{"Content-Type": "application/jsonl", "Content-Length": "36"},
		},
		"range": {
			path: "/catalogs/c/api/v1/all", header: map[string]string{"Range": "bytes=0-3"}, status: 206, body: objectP[:4],
		},
		"not modified": {
			path: "/catalogs/c/api/v1/all", header: map[string]string{"If-Modified-Since": modified}, status: 304,
		},
		"bad date is ignored": {
			path: "/catalogs/c/api/v1/all", header: map[string]string{"If-Modified-Since": "yesterday"}, status: 200, body: objectP,
		},
		"any entity": {
			path: "/catalogs/c/api/v1/all", header: map[string]string{"If-None-Match": "*"}, status: 304,
		},
		"another entity": {
			path: "/catalogs/c/api/v1/all", header: map[string]string{"If-None-Match": `"x"`, "If-Modified-Since": modified}, status: 200, body: objectP,
		},
		"demanded entity": {
			path: "/catalogs/c/api/v1/all", header: map[string]string{"If-Match": `"x"`}, status: 412,
		},
		"demanded age": {
			path: "/catalogs/c/api/v1/all", header: map[string]string{"If-Unmodified-Since": "Mon, 01 Jan 2001 00:00:00 GMT"}, status: 412,
		},
		"no content":       {path: "/catalogs/d/api/v1/all", status: 404, body: "404 Not Found\n"},
		"unknown route":    {path: "/catalogs/c/api/v1/other", status: 404, body: "404 page not found\n"},
		"trailing slash":   {path: "/catalogs/c/api/v1/all/", status: 404, body: "404 page not found\n"},
		"above":            {path: "/catalogs/c", status: 404, body: "404 page not found\n"},
		"wrong method":     {method: http.MethodPost, path: "/catalogs/c/api/v1/all", status: 405, body: "Method Not Allowed\n"},
		"invalid name":     {path: "/catalogs/NOPE/api/v1/all", status: 400, body: "invalid catalog name: "},
		"name with a path": {path: "/catalogs/..%2Fc/api/v1/all", status: 400, body: "invalid catalog name: "},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			req := httptest.NewRequestWithContext(t.Context(), tt.method, tt.path, nil)
			for key, value := range tt.header {
				req.Header.Set(key, value)
			}
			rec := httptest.NewRecorder()
			catalogserver.Handler(s).ServeHTTP(rec, req)
			if rec.Code != tt.status {
				t.Errorf("got status %d, want %d", rec.Code, tt.status)
			}
			body := rec.Body.String()
			if tt.status == 400 && strings.HasPrefix(body, tt.body) && strings.HasSuffix(body, "\n") {
				body = tt.body
			}
			if body != tt.body {
				t.Errorf("got body %q, want %q", body, tt.body)
			}
			for key, value := range tt.want {
				if got := rec.Header().Get(key); got != value {
					t.Errorf("got %s %q, want %q", key, got, value)
				}
			}
		})
	}
}

// start runs a server until the test ends and returns its address.
func start(t *testing.T, cfg catalogserver.ServerConfig) string {
	t.Helper()
	cfg.Address = "127.0.0.1:0"
	s, err := catalogserver.NewServer(cfg)
	if err != nil {
		t.Fatal(err)
	}
	if s.NeedLeaderElection() {
		t.Error("the server waits to be the leader")
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
	for deadline := time.Now().Add(30 * time.Second); !condition(); {
		if time.Now().After(deadline) {
			t.Fatal("it did not happen")
		}
		time.Sleep(10 * time.Millisecond)
	}
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
func TestServerReloadsItsCertificate(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	certFile, keyFile := filepath.Join(dir, "tls.crt"), filepath.Join(dir, "tls.key")
	trusted := x509.NewCertPool()
	writeCertificate(t, trusted, certFile, keyFile, 1)
	address := start(t, catalogserver.ServerConfig{
		CertFile: certFile, KeyFile: keyFile,
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
	if got := serial(); got != 1 {
		t.Errorf("got certificate %d", got)
	}
	client := &http.Client{Transport: &http.Transport{TLSClientConfig: &tls.Config{RootCAs: trusted}, ForceAttemptHTTP2: true}}
	t.Cleanup(client.CloseIdleConnections)
	if got := fetch(t, client, "https://"+address); got != "HTTP/1.1" {
		t.Errorf("got protocol %q", got)
	}
	writeCertificate(t, trusted, certFile, keyFile, 2)
	eventually(t, func() bool { return serial() == 2 })
}

func TestNewServerRefusesConfigs(t *testing.T) {
	t.Parallel()
	for name, cfg := range map[string]catalogserver.ServerConfig{
		"no handler":       {},
		"certificate only": {Handler: http.NotFoundHandler(), CertFile: "x"},
		"key only":         {Handler: http.NotFoundHandler(), KeyFile: "x"},
	} {
		if _, err := catalogserver.NewServer(cfg); err == nil {
			t.Errorf("%s: no error", name)
		}
	}
	for name, cfg := range map[string]catalogserver.ServerConfig{
		"no certificate": {Handler: http.NotFoundHandler(), CertFile: "missing", KeyFile: "missing"},
		"no address":     {Handler: http.NotFoundHandler(), Address: "256.0.0.1:http"},
	} {
		s, err := catalogserver.NewServer(cfg)
		if err != nil {
			t.Fatal(err)
		}
		if err := s.Start(t.Context()); err == nil {
			t.Errorf("%s: no error", name)
		}
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

// writeCertificate replaces the files with a certificate that trusted trusts.
func writeCertificate(t *testing.T, trusted *x509.CertPool, certFile, keyFile string, serial int64) {
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
	keyDER, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	var cert, private bytes.Buffer
	_ = pem.Encode(&cert, &pem.Block{Type: "CERTIFICATE", Bytes: der})
	_ = pem.Encode(&private, &pem.Block{Type: "PRIVATE KEY", Bytes: keyDER})
	trusted.AppendCertsFromPEM(cert.Bytes())
	for path, data := range map[string][]byte{certFile: cert.Bytes(), keyFile: private.Bytes()} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}
