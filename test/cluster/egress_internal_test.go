package cluster

import (
	"bufio"
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"regexp"
	"testing"
)

// newEgressFixture starts a proxy that leads to an echo, and gives the way to it.
func newEgressFixture(t *testing.T) (address string, config *tls.Config) {
	t.Helper()
	dir := &workDir{path: t.TempDir()}
	authority, err := newAuthority()
	if err != nil {
		t.Fatal(err)
	}
	if err := writeServerFiles(dir, authority, nil); err != nil {
		t.Fatal(err)
	}
	dial := func(_ context.Context, address string) (net.Conn, error) {
		if address != "10.0.0.7:443" {
			return nil, errors.New("there is nothing")
		}
		near, far := net.Pipe()
		go func() { _, _ = io.Copy(far, far) }()
		return near, nil
	}
	proxy, err := startEgress(dial, authority, dir, dir.join("egress.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(proxy.stop)
	text, err := os.ReadFile(dir.join("egress.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	roots := x509.NewCertPool()
	roots.AddCert(authority.certificate)
	pair, err := tls.LoadX509KeyPair(dir.join("kubelet-client.crt"), dir.join("kubelet-client.key"))
	if err != nil {
		t.Fatal(err)
	}
	found := regexp.MustCompile(`url: https://(\S+)`).FindSubmatch(text)
	if found == nil {
		t.Fatalf("the configuration names no proxy:\n%s", text)
	}
	return string(found[1]), &tls.Config{RootCAs: roots, Certificates: []tls.Certificate{pair}}
}

// connect asks the proxy for a connection and gives it with the status.
func connect(t *testing.T, proxy string, config *tls.Config, address string) (net.Conn, int, error) {
	t.Helper()
	conn, err := (&tls.Dialer{Config: config}).DialContext(t.Context(), "tcp", proxy)
	if err != nil {
		return nil, 0, err
	}
	t.Cleanup(func() { _ = conn.Close() })
	fmt.Fprintf(conn, "CONNECT %s HTTP/1.1\r\nHost: %s\r\n\r\n", address, address)
	response, err := http.ReadResponse(bufio.NewReader(conn), &http.Request{Method: http.MethodConnect})
	if err != nil {
		return nil, 0, err
	}
	return conn, response.StatusCode, nil
}

func TestEgressConnects(t *testing.T) {
	t.Parallel()
	proxy, config := newEgressFixture(t)
	conn, status, err := connect(t, proxy, config, "10.0.0.7:443")
	if err != nil || status != http.StatusOK {
		t.Fatalf("status %d, %v", status, err)
	}
	if _, err := conn.Write([]byte("hello")); err != nil {
		t.Fatal(err)
	}
	got := make([]byte, 5)
	if _, err := io.ReadFull(conn, got); err != nil || string(got) != "hello" {
		t.Errorf("got %q, %v", got, err)
	}
}

func TestEgressTellsThatThereIsNothing(t *testing.T) {
	t.Parallel()
	proxy, config := newEgressFixture(t)
	if _, status, err := connect(t, proxy, config, "10.0.0.8:443"); err != nil || status != http.StatusBadGateway {
		t.Errorf("status %d, %v", status, err)
	}
}

func TestEgressServesTheAPIServerOnly(t *testing.T) {
	t.Parallel()
	proxy, config := newEgressFixture(t)
	config.Certificates = nil
	if _, status, err := connect(t, proxy, config, "10.0.0.7:443"); err == nil {
		t.Errorf("a client without a certificate got status %d", status)
	}
}
