package catalogserver

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync/atomic"
	"time"

	"golang.org/x/sync/errgroup"
)

const (
	// Requests have no body, so they are short.
	readTimeout = 5 * time.Second
	// writeTimeout lets 200 MB through at less than 1 MB/s.
	writeTimeout = 5 * time.Minute
	idleTimeout  = 2 * time.Minute
	// maxHeaderBytes is generous for requests that need no header at all.
	maxHeaderBytes = 16 << 10
	// shutdownTimeout is for replies under way when the process ends.
	shutdownTimeout = 30 * time.Second
)

var (
	openBounds    = bounds{total: maxOpen, perNetwork: maxOpen, grace: unusedGrace}
	requestBounds = bounds{total: maxRequests, perNetwork: maxNetworkRequests, grace: unusedGrace}
)

// errNotListening is what Server.Check returns before the server is up.
var errNotListening = errors.New("the catalog server does not listen yet")

// ServerConfig is what a Server is made from.
type ServerConfig struct {
	// Address is the address to listen on, such as ":8443".
	Address string
	// Handler answers the requests.
	Handler http.Handler
	// GetCertificate returns the certificate to serve with, for each connection
	// anew. Without it the server speaks plain HTTP.
	GetCertificate func(*tls.ClientHelloInfo) (*tls.Certificate, error)
	// TLS says which versions, cipher suites and curves are accepted. Without it TLS 1.2
	// is the least.
	TLS func(*tls.Config)
	// Metrics count requests of the network; nil for nobody to count them.
	Metrics *Metrics
}

// Server serves catalogs, on every replica.
type Server struct {
	cfg   ServerConfig
	addr  atomic.Pointer[net.Addr]
	local *inProcess

	draining atomic.Bool
}

// NewServer returns a server that listens once it is started.
func NewServer(cfg ServerConfig) (*Server, error) {
	if cfg.Handler == nil {
		return nil, errors.New("a handler is required")
	}
	return &Server{cfg: cfg, local: newInProcess()}, nil
}

// Check returns an error until the server listens. It is a health check.
func (s *Server) Check(*http.Request) error {
	if s.addr.Load() == nil {
		return errNotListening
	}
	return nil
}

// Drain has clients of the network go elsewhere with their next request: each reply is the
// last of its connection. Connections without a request stay open until the server ends,
// as a client may be about to use them.
func (s *Server) Drain() { s.draining.Store(true) }

// lastOfConnection tells clients of a server that ends soon to connect anew.
func (s *Server) lastOfConnection(next http.Handler) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if s.draining.Load() {
			w.Header().Set("Connection", "close")
		}
		next.ServeHTTP(w, r)
	})
}

func (s *Server) counted(handler http.Handler) http.Handler {
	if s.cfg.Metrics == nil {
		return handler
	}
	return s.cfg.Metrics.counting(handler)
}

// Addr returns the address that the server listens on, or nil when it does not.
func (s *Server) Addr() net.Addr {
	if addr := s.addr.Load(); addr != nil {
		return *addr
	}
	return nil
}

// Start serves until ctx ends, and then finishes the replies under way. The
// error says that the server could not start, failed, or had to cut replies.
func (s *Server) Start(ctx context.Context) error {
	listener, err := new(net.ListenConfig).Listen(ctx, "tcp", s.cfg.Address)
	if err != nil {
		return fmt.Errorf("catalog server: %w", err)
	}
	addr := listener.Addr()
	s.addr.Store(&addr)
	srv := newHTTPServer(s.lastOfConnection(s.counted(newGate(s.cfg.Handler, requestBounds))))
	srv.TLSConfig = s.cfg.tls()
	local := newHTTPServer(s.cfg.Handler)
	group, groupCtx := errgroup.WithContext(ctx)
	group.Go(func() error { return serve(srv, newLobby(listener, openBounds, maxWaiting)) })
	group.Go(func() error { return serve(local, s.local) })
	group.Go(func() error {
		<-groupCtx.Done()
		s.addr.Store(nil)
		return errors.Join(shutdown(groupCtx, srv), shutdown(groupCtx, local))
	})
	if err := group.Wait(); err != nil {
		return fmt.Errorf("catalog server: %w", err)
	}
	return nil
}

// tls is nil for plain HTTP.
func (c ServerConfig) tls() *tls.Config {
	if c.GetCertificate == nil {
		return nil
	}
	config := &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: c.GetCertificate}
	if c.TLS != nil {
		c.TLS(config)
	}
	return config
}

func newHTTPServer(handler http.Handler) *http.Server {
	srv := &http.Server{
		Handler:        handler,
		ReadTimeout:    readTimeout,
		WriteTimeout:   writeTimeout,
		IdleTimeout:    idleTimeout,
		MaxHeaderBytes: maxHeaderBytes,
		ConnContext:    withConn,
		ConnState:      noteState,
		ErrorLog:       log.New(clientErrors{log.Writer()}, "", log.LstdFlags),
		Protocols:      new(http.Protocols),
	}
	// There is nothing to multiplex, and resetting streams is a known attack.
	srv.Protocols.SetHTTP1(true)
	return srv
}

// clientErrors leaves out of a log what any client can have written there, as often as
// it likes.
type clientErrors struct{ io.Writer }

// Write implements io.Writer, for one message at a time.
func (w clientErrors) Write(message []byte) (int, error) {
	if bytes.Contains(message, []byte("http: TLS handshake error from ")) {
		return len(message), nil
	}
	return w.Writer.Write(message)
}

func serve(srv *http.Server, listener net.Listener) error {
	var err error
	if srv.TLSConfig != nil {
		err = srv.ServeTLS(listener, "", "")
	} else {
		err = srv.Serve(listener)
	}
	if errors.Is(err, http.ErrServerClosed) {
		return nil
	}
	return err
}

// shutdown ends srv although ctx has ended.
func shutdown(ctx context.Context, srv *http.Server) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), shutdownTimeout)
	defer cancel()
	if err := srv.Shutdown(ctx); err != nil {
		return errors.Join(err, srv.Close())
	}
	return nil
}
