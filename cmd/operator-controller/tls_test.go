package main

import (
	"context"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/rsa"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"math/big"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/spf13/pflag"
	"k8s.io/client-go/rest"
	"sigs.k8s.io/controller-runtime/pkg/certwatcher"
	metricsserver "sigs.k8s.io/controller-runtime/pkg/metrics/server"

	"github.com/clusterextensions/operator-controller/internal/catalogserver"
)

// certificateFiles writes a certificate for a key, and the key.
func certificateFiles(t *testing.T, key any, public any) (cert, keyFile string) {
	t.Helper()
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), Subject: pkix.Name{CommonName: "server"},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageKeyEncipherment,
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, public, key)
	if err != nil {
		t.Fatal(err)
	}
	private, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		t.Fatal(err)
	}
	cert, keyFile = filepath.Join(t.TempDir(), "tls.crt"), filepath.Join(t.TempDir(), "tls.key")
	for file, block := range map[string]*pem.Block{
		cert: {Type: "CERTIFICATE", Bytes: der}, keyFile: {Type: "PRIVATE KEY", Bytes: private},
	} {
		if err := os.WriteFile(file, pem.EncodeToMemory(block), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return cert, keyFile
}

func rsaFiles(t *testing.T) (cert, key string) {
	t.Helper()
	made, err := rsa.GenerateKey(rand.Reader, 2048)
	if err != nil {
		t.Fatal(err)
	}
	return certificateFiles(t, made, made.Public())
}

func ecdsaFiles(t *testing.T) (cert, key string) {
	t.Helper()
	made, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	return certificateFiles(t, made, made.Public())
}

// serving starts both servers as the program does, and gives their addresses.
func serving(t *testing.T, o *options) map[string]string {
	t.Helper()
	certificate, err := certwatcher.New(o.tlsCert, o.tlsKey)
	if err != nil {
		t.Fatal(err)
	}
	metrics, err := metricsserver.NewServer(metricsOptions(o, certificate.GetCertificate), &rest.Config{Host: "127.0.0.1:1"}, http.DefaultClient)
	if err != nil {
		t.Fatal(err)
	}
	catalogs, err := catalogserver.NewServer(catalogServerConfig(o, certificate.GetCertificate, http.NotFoundHandler()))
	if err != nil {
		t.Fatal(err)
	}
	start(t, metrics.Start)
	start(t, catalogs.Start)
	bound, ok := metrics.(interface{ GetBindAddr() string })
	if !ok {
		t.Fatal("the metrics server does not say where it listens")
	}
	deadline := time.Now().Add(10 * time.Second)
	for bound.GetBindAddr() == "" || catalogs.Addr() == nil {
		if time.Now().After(deadline) {
			t.Fatal("a server does not listen")
		}
		time.Sleep(5 * time.Millisecond)
	}
	return map[string]string{"metrics": bound.GetBindAddr(), "catalogs": catalogs.Addr().String()}
}

func start(t *testing.T, run func(context.Context) error) {
	t.Helper()
	ctx, cancel := context.WithCancel(t.Context())
	done := make(chan error, 1)
	go func() { done <- run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-done; err != nil {
			t.Error(err)
		}
	})
}

// handshake says what a client came to that offers no more than its configuration; nil if
// it was refused.
func handshake(t *testing.T, address string, client *tls.Config) *tls.ConnectionState {
	t.Helper()
	client = client.Clone()
	client.InsecureSkipVerify = true // what is tested is what servers accept
	dialer := &tls.Dialer{NetDialer: &net.Dialer{Timeout: 5 * time.Second}, Config: client}
	conn, err := dialer.DialContext(t.Context(), "tcp", address)
	if err != nil {
		return nil
	}
	defer conn.Close()
	// In TLS 1.3 the client is done before the server has looked at all.
	request := "GET / HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"
	if _, err := conn.Write([]byte(request)); err != nil {
		return nil
	}
	if _, err := conn.Read(make([]byte, 1)); err != nil {
		return nil
	}
	state := conn.(*tls.Conn).ConnectionState() //nolint:forcetypeassert // it is of a tls.Dialer
	return &state
}

// only is a client with one version and, if any, one cipher suite.
func only(version uint16, ciphers ...uint16) *tls.Config {
	return &tls.Config{MinVersion: version, MaxVersion: version, CipherSuites: ciphers}
}

func withCurve(curve tls.CurveID) *tls.Config {
	return &tls.Config{MinVersion: tls.VersionTLS13, CurvePreferences: []tls.CurveID{curve}}
}

// TestHandshakes: clients that offer but one thing are accepted or refused as the profile
// says, by every server that speaks TLS.
func TestHandshakes(t *testing.T) {
	t.Parallel()
	const rsaCBC, gcm = tls.TLS_RSA_WITH_AES_128_CBC_SHA, tls.TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256
	clients := map[string]*tls.Config{
		"TLS 1.0":            only(tls.VersionTLS10, rsaCBC, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA),
		"TLS 1.1":            only(tls.VersionTLS11, rsaCBC, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA),
		"TLS 1.2":            only(tls.VersionTLS12),
		"TLS 1.2 GCM":        only(tls.VersionTLS12, gcm),
		"TLS 1.2 ChaCha20":   only(tls.VersionTLS12, tls.TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256),
		"TLS 1.2 CBC":        only(tls.VersionTLS12, tls.TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA),
		"TLS 1.2 RSA":        only(tls.VersionTLS12, rsaCBC),
		"TLS 1.2 3DES":       only(tls.VersionTLS12, tls.TLS_RSA_WITH_3DES_EDE_CBC_SHA),
		"TLS 1.3":            only(tls.VersionTLS13),
		"X25519MLKEM768":     withCurve(tls.X25519MLKEM768),
		"SecP256r1MLKEM768":  withCurve(tls.SecP256r1MLKEM768),
		"X25519":             withCurve(tls.X25519),
		"P-256":              withCurve(tls.CurveP256),
		"P-384":              withCurve(tls.CurveP384),
		"P-521":              withCurve(tls.CurveP521),
		"RC4, as never used": only(tls.VersionTLS12, tls.TLS_RSA_WITH_RC4_128_SHA),
	}
	modern := []string{"TLS 1.3", "X25519MLKEM768", "X25519", "P-256", "P-384"}
	intermediate := append([]string{"TLS 1.2", "TLS 1.2 GCM", "TLS 1.2 ChaCha20"}, modern...)
	old := append([]string{"TLS 1.0", "TLS 1.1", "TLS 1.2 CBC", "TLS 1.2 RSA", "TLS 1.2 3DES"}, intermediate...)
	tests := map[string]struct {
		args     []string
		accepted []string
	}{
		"default":      {accepted: intermediate},
		"modern":       {args: []string{"--tls-profile=modern"}, accepted: modern},
		"intermediate": {args: []string{"--tls-profile=intermediate"}, accepted: intermediate},
		"old":          {args: []string{"--tls-profile=old"}, accepted: old},
		"custom, one suite and one curve": {
			args: []string{
				"--tls-profile=custom", "--tls-custom-version=TLSv1.2",
				"--tls-custom-ciphers=TLS_ECDHE_RSA_WITH_AES_128_CBC_SHA", "--tls-custom-curves=secp521r1",
			},
			accepted: []string{"TLS 1.2", "TLS 1.2 CBC", "TLS 1.3", "P-521"},
		},
		"custom, withstanding quantum computers only": {
			args: []string{
				"--tls-profile=custom", "--tls-custom-version=TLSv1.3", "--tls-custom-curves=X25519MLKEM768,SecP256r1MLKEM768",
			},
			accepted: []string{"TLS 1.3", "X25519MLKEM768", "SecP256r1MLKEM768"},
		},
	}
	cert, key := rsaFiles(t)
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for server, address := range serving(t, optionsFor(t, cert, key, tc.args...)) {
				accepted := map[string]bool{}
				for _, client := range tc.accepted {
					accepted[client] = true
				}
				for client, config := range clients {
					if state := handshake(t, address, config); (state != nil) != accepted[client] {
						t.Errorf("%s: a client with %s is accepted: %t, want %t", server, client, state != nil, accepted[client])
					}
				}
			}
		})
	}
}

// A client that knows everything gets the most that there is, with our own kind of
// certificate, and no HTTP/2.
func TestBestHandshake(t *testing.T) {
	t.Parallel()
	cert, key := ecdsaFiles(t)
	for _, profile := range []string{"old", "intermediate", "modern"} {
		for server, address := range serving(t, optionsFor(t, cert, key, "--tls-profile="+profile)) {
			state := handshake(t, address, &tls.Config{MinVersion: tls.VersionTLS10, NextProtos: []string{"h2", "http/1.1"}})
			if state == nil || state.Version != tls.VersionTLS13 || state.CurveID != tls.X25519MLKEM768 || state.NegotiatedProtocol != "http/1.1" {
				t.Errorf("%s, %s: came to %+v", profile, server, state)
			}
		}
	}
}

func optionsFor(t *testing.T, cert, key string, args ...string) *options {
	t.Helper()
	o := defaultOptions()
	flags := pflag.NewFlagSet("", pflag.ContinueOnError)
	o.bind(flags)
	args = append([]string{
		"--tls-cert=" + cert, "--tls-key=" + key, "--metrics-bind-address=127.0.0.1:0", "--catalog-server-bind-address=127.0.0.1:0",
	}, args...)
	if err := flags.Parse(args); err != nil {
		t.Fatal(err)
	}
	if err := o.complete(); err != nil {
		t.Fatal(err)
	}
	return o
}
