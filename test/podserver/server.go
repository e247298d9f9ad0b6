// Package podserver serves what pods of a local cluster would, where no pods run: over TLS, by a
// certificate that is read as from a volume.
package podserver

import (
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

	corev1 "k8s.io/api/core/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

// Server is that of one pod. Each request comes over a connection of its own, so that every one
// verifies the certificate. Callers are asked for theirs, and need none.
type Server struct {
	server      *http.Server
	address     string
	certificate atomic.Pointer[tls.Certificate]
	fails       atomic.Bool
}

// errNoCertificate is that of a pod whose volume is still empty.
var errNoCertificate = errors.New("there is no certificate yet")

// Start starts a server that has no certificate yet.
func Start(handler http.Handler) (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
	if err != nil {
		return nil, fmt.Errorf("listening for requests: %w", err)
	}
	s := &Server{address: listener.Addr().String()}
	s.server = &http.Server{
		Handler:           handler,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // callers tell
		TLSConfig: &tls.Config{
			MinVersion: tls.VersionTLS12, ClientAuth: tls.RequestClientCert,
			GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
				loaded := s.certificate.Load()
				if loaded == nil || s.fails.Load() {
					return nil, errNoCertificate
				}
				return loaded, nil
			},
		},
	}
	s.server.SetKeepAlivesEnabled(false)
	go func() { _ = s.server.ServeTLS(listener, "", "") }() // until Close
	return s, nil
}

// Close ends the server.
func (s *Server) Close() { _ = s.server.Close() }

// Fail has the server answer nobody, or everybody again.
func (s *Server) Fail(fails bool) { s.fails.Store(fails) }

// Address is where the server listens.
func (s *Server) Address() string { return s.address }

// Serial is that of the certificate in use, or empty.
func (s *Server) Serial() string {
	if loaded := s.certificate.Load(); loaded != nil {
		return loaded.Leaf.SerialNumber.String()
	}
	return ""
}

// Load takes over what a pod would find in a volume made of the Secret. As with a volume,
// nothing changes while there is no certificate.
func (s *Server) Load(secret *corev1.Secret) error {
	certificate, key := secret.Data[corev1.TLSCertKey], secret.Data[corev1.TLSPrivateKeyKey]
	if len(certificate) == 0 || len(key) == 0 {
		return nil
	}
	pair, err := tls.X509KeyPair(certificate, key)
	if err != nil {
		return fmt.Errorf("reading the certificate in Secret %q: %w", secret.Name, err)
	}
	s.certificate.Store(&pair)
	return nil
}

// Follow serves by the certificate in a Secret until the context ends. The Secret is read every now
// and then, as a pod gets to know from its volume.
func (s *Server) Follow(ctx context.Context, reader client.Reader, of client.ObjectKey, every time.Duration) {
	for {
		secret := &corev1.Secret{}
		if err := reader.Get(ctx, of, secret); err == nil {
			_ = s.Load(secret) // the next one may do
		}
		select {
		case <-ctx.Done():
			return
		case <-time.After(every):
		}
	}
}
