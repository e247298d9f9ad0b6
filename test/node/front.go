package node

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httputil"
	"net/url"
	"sync"
	"time"
)

// front is what stands before the registries: one server with TLS, at the port that
// references without one mean. It can be away.
type front struct {
	address     string
	certificate tls.Certificate
	handler     http.Handler

	mu     sync.Mutex
	server *http.Server // nil while it is away
}

// newFront sends requests for a host to the plain HTTP server that stands for it.
func newFront(address string, certificate tls.Certificate, servers map[string]string) *front {
	proxies := map[string]http.Handler{}
	for host, server := range servers {
		proxy := httputil.NewSingleHostReverseProxy(&url.URL{Scheme: "http", Host: server})
		proxy.ErrorLog = log.New(io.Discard, "", 0) // clients that hang up
		proxies[host] = proxy
	}
	return &front{address: address, certificate: certificate, handler: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if proxy, ok := proxies[r.Host]; ok {
			proxy.ServeHTTP(w, r)
			return
		}
		http.Error(w, "no registry is here by the name of "+r.Host, http.StatusMisdirectedRequest)
	})}
}

// open serves until close.
func (f *front) open(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.server != nil {
		return nil
	}
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", f.address)
	if err != nil {
		return fmt.Errorf("listening for pulls: %w", err)
	}
	f.server = &http.Server{
		Handler:           f.handler,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // clients that hang up
		TLSConfig:         &tls.Config{MinVersion: tls.VersionTLS12, Certificates: []tls.Certificate{f.certificate}},
	}
	go func(server *http.Server) { _ = server.ServeTLS(listener, "", "") }(f.server) // until it is closed
	return nil
}

// close ends what is being served, and refuses connections until open.
func (f *front) close() error {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.server == nil {
		return nil
	}
	err := f.server.Close()
	f.server = nil
	if errors.Is(err, net.ErrClosed) {
		return nil
	}
	return err
}
