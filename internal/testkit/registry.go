package testkit

import (
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"os"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/google/go-containerregistry/pkg/registry"
)

// Registry is an image registry in this process, served over plain HTTP on a
// free port of the loopback interface. It needs no testing.TB: end-to-end
// tests and demos use it too.
type Registry struct {
	store  http.Handler // the registry proper, reached by pushes directly
	host   string
	server *http.Server

	mu       sync.Mutex
	served   http.Handler // store behind the faults of Use
	requests []RegistryRequest
}

// RegistryRequest is one request that reached a [Registry] over the network.
type RegistryRequest struct {
	Method string
	Path   string
}

// StartRegistry starts an empty registry. The caller closes it. Without an option for that, it
// does not have the API for referrers.
func StartRegistry(options ...registry.Option) (*Registry, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return nil, fmt.Errorf("starting registry: %w", err)
	}
	store := registry.New(append(options, registry.Logger(log.New(io.Discard, "", 0)))...)
	r := &Registry{store: store, served: store, host: listener.Addr().String()}
	r.server = &http.Server{Handler: http.HandlerFunc(r.serve), ReadHeaderTimeout: time.Minute}
	go func() {
		// Serve returns when the registry is closed, there is nobody to tell.
		_ = r.server.Serve(listener)
	}()
	return r, nil
}

// Host returns host:port of the registry.
func (r *Registry) Host() string { return r.host }

// Close stops the registry and ends what it is serving.
func (r *Registry) Close() error { return r.server.Close() }

func (r *Registry) serve(w http.ResponseWriter, req *http.Request) {
	r.mu.Lock()
	r.requests = append(r.requests, RegistryRequest{Method: req.Method, Path: req.URL.Path})
	served := r.served
	r.mu.Unlock()
	served.ServeHTTP(w, req)
}

// Requests returns what was asked of the registry since the start, or since
// the last call of ResetRequests. Pushes are not among it.
func (r *Registry) Requests() []RegistryRequest {
	r.mu.Lock()
	defer r.mu.Unlock()
	return slices.Clone(r.requests)
}

// Count returns how many requests had the given part in their path.
func (r *Registry) Count(part string) int {
	count := 0
	for _, req := range r.Requests() {
		if strings.Contains(req.Path, part) {
			count++
		}
	}
	return count
}

// ResetRequests forgets the requests so far.
func (r *Registry) ResetRequests() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.requests = nil
}

// Use puts a handler between the network and the registry; the last one added
// is the first to see a request. Pushes do not pass it.
func (r *Registry) Use(wrap func(http.Handler) http.Handler) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.served = wrap(r.served)
}

// Heal removes everything that Use has added.
func (r *Registry) Heal() {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.served = r.store
}

// WriteRegistriesConf writes a registries.conf to path that sends references
// with the given prefixes, and those that name this registry itself, here over
// plain HTTP.
func (r *Registry) WriteRegistriesConf(path string, prefixes ...string) error {
	var text strings.Builder
	for _, prefix := range append([]string{r.host}, prefixes...) {
		fmt.Fprintf(&text, "[[registry]]\nprefix = %q\nlocation = %q\ninsecure = true\n\n", prefix, r.host)
	}
	if err := os.WriteFile(path, []byte(text.String()), 0o600); err != nil {
		return fmt.Errorf("writing registries.conf: %w", err)
	}
	return nil
}
