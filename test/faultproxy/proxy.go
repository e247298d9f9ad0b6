package faultproxy

import (
	"context"
	"encoding/pem"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"sync"

	"k8s.io/client-go/rest"
	"k8s.io/client-go/tools/clientcmd"
)

// Proxy passes requests on to an API server, over TLS and HTTP/2 on both sides.
type Proxy struct {
	server *httptest.Server
	direct http.Handler // to the API server

	mu     sync.Mutex
	served http.Handler // direct behind what Use has added
}

// Start starts a proxy on a free port of the loopback interface. Of the target
// only its address and how to trust it are used. The caller closes the proxy.
func Start(target *rest.Config) (*Proxy, error) {
	host, err := url.Parse(target.Host)
	if err != nil {
		return nil, fmt.Errorf("starting a proxy: %w", err)
	}
	transport, err := rest.TransportFor(rest.AnonymousClientConfig(target))
	if err != nil {
		return nil, fmt.Errorf("starting a proxy: %w", err)
	}
	direct := &httputil.ReverseProxy{
		Rewrite:       func(r *httputil.ProxyRequest) { r.SetURL(host) },
		Transport:     transport,
		FlushInterval: -1, // a watch does not wait for more
		ErrorLog:      log.New(io.Discard, "", 0),
		// The client sees what the proxy saw: nothing.
		ErrorHandler: func(http.ResponseWriter, *http.Request, error) { panic(http.ErrAbortHandler) },
	}
	p := &Proxy{direct: direct, served: direct}
	p.server = httptest.NewUnstartedServer(http.HandlerFunc(p.serve))
	p.server.EnableHTTP2 = true
	p.server.Config.ErrorLog = direct.ErrorLog
	p.server.Config.ConnContext = withConnection
	p.server.StartTLS()
	return p, nil
}

// Close cuts every connection.
func (p *Proxy) Close() {
	p.server.CloseClientConnections()
	p.server.Close()
}

// Cut ends all connections of clients, and with them what is under way.
func (p *Proxy) Cut() { p.server.CloseClientConnections() }

// Down answers nothing: it is an API server that is away.
func Down(http.Handler) http.Handler {
	return http.HandlerFunc(func(_ http.ResponseWriter, req *http.Request) { reset(req) })
}

// Use puts a handler between the clients and the API server; the last one added
// is the first to see a request.
func (p *Proxy) Use(wrap func(http.Handler) http.Handler) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served = wrap(p.served)
}

// Heal removes everything that Use has added. Requests that are under way stay
// where they are.
func (p *Proxy) Heal() {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.served = p.direct
}

func (p *Proxy) serve(w http.ResponseWriter, req *http.Request) {
	p.mu.Lock()
	served := p.served
	p.mu.Unlock()
	served.ServeHTTP(w, req)
}

// WriteKubeconfig writes the kubeconfig that is at from to path, made to lead
// through the proxy.
func (p *Proxy) WriteKubeconfig(path, from string) error {
	config, err := clientcmd.LoadFromFile(from)
	if err != nil {
		return fmt.Errorf("reading the kubeconfig to lead through the proxy: %w", err)
	}
	certificate := pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: p.server.Certificate().Raw})
	for _, cluster := range config.Clusters {
		cluster.Server = p.server.URL
		cluster.CertificateAuthorityData = certificate
	}
	if err := clientcmd.WriteToFile(*config, path); err != nil {
		return fmt.Errorf("writing the kubeconfig that leads through the proxy: %w", err)
	}
	return nil
}

type connectionKey struct{}

func withConnection(ctx context.Context, connection net.Conn) context.Context {
	return context.WithValue(ctx, connectionKey{}, connection)
}

// reset ends the connection of a request, and with it all that share it, without
// a word.
func reset(req *http.Request) {
	connection, ok := req.Context().Value(connectionKey{}).(net.Conn)
	if ok {
		_ = connection.Close()
	}
	panic(http.ErrAbortHandler)
}
