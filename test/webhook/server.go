package webhook

import (
	"crypto/tls"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	admissionv1 "k8s.io/api/admission/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
)

// The paths that [testkit.Operator] bundles have their webhooks under.
const (
	pathValidate = "/validate"
	pathMutate   = "/mutate"
	pathConvert  = "/convert"
)

// Server answers the webhooks of an operator. Every call comes over a connection
// of its own, so that every call verifies the certificate.
type Server struct {
	server      *http.Server
	address     string
	certificate atomic.Pointer[tls.Certificate]

	mu    sync.Mutex
	calls map[string]int
}

// errNoCertificate is that of a pod whose volume is still empty.
var errNoCertificate = errors.New("there is no certificate yet")

// Start starts a server that has no certificate yet.
func Start() (*Server, error) {
	listener, err := net.Listen("tcp", "127.0.0.1:0") //nolint:noctx // loopback
	if err != nil {
		return nil, fmt.Errorf("listening for webhooks: %w", err)
	}
	s := &Server{address: listener.Addr().String(), calls: map[string]int{}}
	mux := http.NewServeMux()
	mux.HandleFunc(pathValidate, s.admit(validate))
	mux.HandleFunc(pathMutate, s.admit(mutate))
	mux.HandleFunc(pathConvert, s.convert)
	s.server = &http.Server{
		Handler:           mux,
		ReadHeaderTimeout: time.Minute,
		ErrorLog:          log.New(io.Discard, "", 0), // callers tell
		TLSConfig: &tls.Config{MinVersion: tls.VersionTLS12, GetCertificate: func(*tls.ClientHelloInfo) (*tls.Certificate, error) {
			if loaded := s.certificate.Load(); loaded != nil {
				return loaded, nil
			}
			return nil, errNoCertificate
		}},
	}
	s.server.SetKeepAlivesEnabled(false)
	go func() { _ = s.server.ServeTLS(listener, "", "") }() // until Close
	return s, nil
}

// Close ends the server.
func (s *Server) Close() { _ = s.server.Close() }

// Address is where the server listens.
func (s *Server) Address() string { return s.address }

// Load takes over what a pod would find in a volume made of the Secret. As with
// a volume, nothing changes while there is no certificate.
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

// Serial is that of the certificate in use, or empty.
func (s *Server) Serial() string {
	if loaded := s.certificate.Load(); loaded != nil {
		return loaded.Leaf.SerialNumber.String()
	}
	return ""
}

// Calls counts the calls so far, by path.
func (s *Server) Calls() (validate, mutate, convert int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.calls[pathValidate], s.calls[pathMutate], s.calls[pathConvert]
}

func (s *Server) count(r *http.Request) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.calls[r.URL.Path]++
}

func (s *Server) admit(answer func(*admissionv1.AdmissionRequest) *admissionv1.AdmissionResponse) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		s.count(r)
		review := &admissionv1.AdmissionReview{}
		if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
			http.Error(w, "no review", http.StatusBadRequest)
			return
		}
		review.Response = answer(review.Request)
		review.Response.UID = review.Request.UID
		review.Request = nil
		reply(w, review)
	}
}

func (s *Server) convert(w http.ResponseWriter, r *http.Request) {
	s.count(r)
	review := &apiextensionsv1.ConversionReview{}
	if err := json.NewDecoder(r.Body).Decode(review); err != nil || review.Request == nil {
		http.Error(w, "no review", http.StatusBadRequest)
		return
	}
	review.Response = convertAll(review.Request)
	review.Request = nil
	reply(w, review)
}

func reply(w http.ResponseWriter, review any) {
	if err := json.NewEncoder(w).Encode(review); err != nil {
		http.Error(w, err.Error(), http.StatusInternalServerError)
	}
}
