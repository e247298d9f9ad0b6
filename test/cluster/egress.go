package cluster

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/netip"
	"os"
	"sync"
	"time"
)

// Dialer connects the API server to an address inside of the cluster: that of a
// Service or of a pod, with a port.
type Dialer func(ctx context.Context, address string) (net.Conn, error)

// egress is a proxy through which the API server reaches what is inside of the
// cluster. Addresses in there are routed nowhere on this machine.
type egress struct {
	dial   Dialer
	server *http.Server
}

// egressConfig is the part of the API server's configuration that has it use the
// proxy for calls to Services and pods, and for nothing else.
const egressConfig = `apiVersion: apiserver.k8s.io/v1beta1
kind: EgressSelectorConfiguration
egressSelections:
- name: cluster
  connection:
    proxyProtocol: HTTPConnect
    transport:
      tcp:
        url: https://%s
        tlsConfig:
          caBundle: %s
          clientCert: %s
          clientKey: %s
`

// startEgress starts the proxy, which serves the API server and nobody else, and
// writes the configuration that names it.
func startEgress(dial Dialer, authority *authority, dir *workDir, configPath string) (*egress, error) {
	config, err := egressTLS(authority)
	if err != nil {
		return nil, err
	}
	listener, err := tls.Listen("tcp", net.JoinHostPort(loopback.String(), "0"), config)
	if err != nil {
		return nil, fmt.Errorf("listening for the API server: %w", err)
	}
	text := fmt.Appendf(nil, egressConfig, listener.Addr(),
		dir.join("ca.crt"), dir.join("kubelet-client.crt"), dir.join("kubelet-client.key"))
	if err := os.WriteFile(configPath, text, 0o600); err != nil {
		return nil, errors.Join(fmt.Errorf("writing egress configuration: %w", err), listener.Close())
	}
	e := &egress{dial: dial}
	e.server = &http.Server{Handler: http.HandlerFunc(e.connect), ReadHeaderTimeout: time.Minute}
	go func() { _ = e.server.Serve(listener) }() // until stop
	return e, nil
}

func egressTLS(authority *authority) (*tls.Config, error) {
	pair, err := authority.issue(subject{user: "egress", addresses: []netip.Addr{loopback}})
	if err != nil {
		return nil, err
	}
	certificate, err := tls.X509KeyPair(pair.certPEM, pair.keyPEM)
	if err != nil {
		return nil, fmt.Errorf("reading certificate of the egress proxy: %w", err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(authority.certificate)
	return &tls.Config{
		MinVersion:   tls.VersionTLS13,
		Certificates: []tls.Certificate{certificate},
		ClientAuth:   tls.RequireAndVerifyClientCert,
		ClientCAs:    clients,
	}, nil
}

// stop ends the proxy, but not the connections that it has made.
func (e *egress) stop() {
	if e != nil {
		_ = e.server.Close()
	}
}

func (e *egress) connect(w http.ResponseWriter, r *http.Request) {
	if r.Method != http.MethodConnect {
		http.Error(w, "only CONNECT is served", http.StatusMethodNotAllowed)
		return
	}
	there, err := e.dial(r.Context(), r.Host)
	if err != nil {
		http.Error(w, err.Error(), http.StatusBadGateway)
		return
	}
	here, _, err := http.NewResponseController(w).Hijack()
	if err != nil {
		_ = there.Close()
		return
	}
	if _, err := io.WriteString(here, "HTTP/1.1 200 OK\r\n\r\n"); err != nil {
		_ = there.Close()
		_ = here.Close()
		return
	}
	join(here, there)
}

// join copies both ways until either side ends.
func join(a, b net.Conn) {
	var once sync.Once
	end := func() {
		_ = a.Close()
		_ = b.Close()
	}
	pump := func(to, from net.Conn) {
		_, _ = io.Copy(to, from)
		once.Do(end)
	}
	go pump(a, b)
	pump(b, a)
}
