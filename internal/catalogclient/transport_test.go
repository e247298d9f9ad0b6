package catalogclient_test

import (
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/pem"
	"math/big"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/catalogclient"
)

// get makes a request and returns its error.
func get(t *testing.T, c *http.Client, url string) error {
	t.Helper()
	req, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := c.Do(req)
	if err != nil {
		return err
	}
	return resp.Body.Close()
}

func certificate(s *httptest.Server) []byte {
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: s.Certificate().Raw})
}

// unrelatedCertificate returns a certificate that signed nothing.
func unrelatedCertificate(t *testing.T) []byte {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{SerialNumber: big.NewInt(1), IsCA: true}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der})
}

// B-50: a certificate authority that comes later is trusted without a restart.
func TestHTTPClientReloadsCertificates(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	dir := t.TempDir()
	// Mounted volumes have links to files and folders that are not certificates.
	if err := os.Mkdir(filepath.Join(dir, "..data"), 0o700); err != nil {
		t.Fatal(err)
	}
	write(t, filepath.Join(dir, "notes.txt"), []byte("not a certificate"))
	// To open a pipe that nobody writes to lasts for ever.
	if err := syscall.Mkfifo(filepath.Join(dir, "pipe"), 0o600); err != nil {
		t.Fatal(err)
	}
	if _, err := catalogclient.NewHTTPClient(dir); err == nil || !strings.Contains(err.Error(), "no certificates found in") {
		t.Fatalf("got %v for a folder without certificates", err)
	}

	c, err := catalogclient.NewHTTPClient("")
	if err != nil {
		t.Fatal(err)
	}
	if err := get(t, c, s.URL); err == nil {
		t.Error("an unknown certificate is trusted")
	}

	ca := filepath.Join(dir, "ca.crt")
	write(t, ca, certificate(s))
	if c, err = catalogclient.NewHTTPClient(dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	if err := get(t, c, s.URL); err != nil {
		t.Errorf("certificate is not trusted: %v", err)
	}
	if err := os.Remove(ca); err != nil {
		t.Fatal(err)
	}
	if err := get(t, c, s.URL); err != nil {
		t.Errorf("the trust was lost with the file: %v", err)
	}
	s.CloseClientConnections()
	s.Close()
	if err := get(t, c, s.URL); err == nil || !strings.Contains(err.Error(), "no certificates found in") {
		t.Errorf("got %v, want it to name the folder too", err)
	}
}

func TestHTTPClientTrustsLaterCertificates(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	dir := t.TempDir()
	write(t, filepath.Join(dir, "a.pem"), unrelatedCertificate(t))
	c, err := catalogclient.NewHTTPClient(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	if err := get(t, c, s.URL); err == nil {
		t.Error("an unknown certificate is trusted")
	}
	write(t, filepath.Join(dir, "b.pem"), certificate(s))
	if err := get(t, c, s.URL); err != nil {
		t.Errorf("the new certificate is not trusted: %v", err)
	}
}

func TestHTTPClientAsksForMoreCertificates(t *testing.T) {
	t.Parallel()
	s := httptest.NewTLSServer(http.NotFoundHandler())
	t.Cleanup(s.Close)
	var more []byte
	c, err := catalogclient.NewHTTPClient("", func() []byte { return more }, func() []byte { return nil })
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	for _, step := range []struct {
		more    []byte
		trusted bool
	}{{nil, false}, {unrelatedCertificate(t), false}, {certificate(s), true}, {nil, false}} {
		more = step.more
		if err := get(t, c, s.URL); (err == nil) != step.trusted {
			t.Errorf("got %v, want trusted %v", err, step.trusted)
		}
	}
}

func TestHTTPClientRefusesWeakTransport(t *testing.T) {
	t.Parallel()
	plain := httptest.NewServer(http.NotFoundHandler())
	t.Cleanup(plain.Close)
	old := httptest.NewUnstartedServer(http.NotFoundHandler())
	old.TLS = &tls.Config{MinVersion: tls.VersionTLS10, MaxVersion: tls.VersionTLS11}
	old.StartTLS()
	t.Cleanup(old.Close)
	downgrading := httptest.NewTLSServer(http.RedirectHandler(plain.URL, http.StatusFound))
	t.Cleanup(downgrading.Close)

	dir := t.TempDir()
	write(t, filepath.Join(dir, "ca.crt"), certificate(downgrading))
	c, err := catalogclient.NewHTTPClient(dir)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(c.CloseIdleConnections)
	if err := get(t, c, old.URL); err == nil {
		t.Error("TLS 1.1 is accepted")
	}
	if err := get(t, c, downgrading.URL); err == nil || !strings.Contains(err.Error(), "from https to http") {
		t.Errorf("got %v, want the redirect refused", err)
	}
}
