package image_test

import (
	"crypto/rand"
	"crypto/tls"
	"crypto/x509"
	"encoding/base64"
	"encoding/pem"
	"errors"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"net/url"
	"path/filepath"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/clusterextensions/operator-controller/internal/image"
)

// leading is a registry over https that leads elsewhere, and a puller that trusts its
// certificate and has credentials for it.
type leading struct {
	*fixture

	registry  *httptest.Server
	challenge string // WWW-Authenticate, until there is a token
	redirect  string // Location of blobs

	// elsewhere is where the registry leads, over https and as localhost, plain is the
	// same over http. asked are the requests there, entrusted those with credentials.
	elsewhere, plain *httptest.Server
	asked, entrusted atomic.Int32

	authFile string
}

func newLeading(t *testing.T) *leading {
	t.Helper()
	l := &leading{authFile: filepath.Join(t.TempDir(), "auth.json")}
	certificate := certificateFor(t, "localhost")
	certs := t.TempDir()
	writeFile(t, filepath.Join(certs, "ca.crt"), string(pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: certificate.Certificate[0]})))
	l.fixture = newFixture(t, func(config *image.Config) { config.CertsDir, config.AuthFile = certs, l.authFile })
	l.push(t, mapFS(bundleFiles), nil)
	store := "http://" + l.fixture.registry.Host()

	l.registry = serveTLS(t, certificate, func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.URL.Path == "/elsewhere":
			http.Redirect(w, req, req.FormValue("to"), http.StatusTemporaryRedirect)
		case l.challenge != "" && req.Header.Get("Authorization") != "Bearer the-token":
			w.Header().Set("WWW-Authenticate", l.challenge)
			w.WriteHeader(http.StatusUnauthorized)
		case l.redirect != "" && strings.Contains(req.URL.Path, "/blobs/"):
			http.Redirect(w, req, l.redirect+req.URL.Path, http.StatusTemporaryRedirect)
		default:
			relay(t, w, store+req.URL.Path, req)
		}
	})
	other := func(w http.ResponseWriter, req *http.Request) {
		l.asked.Add(1)
		if _, _, ok := req.BasicAuth(); ok || req.FormValue("refresh_token") != "" {
			l.entrusted.Add(1)
		}
		if strings.Contains(req.URL.Path, "/blobs/") {
			relay(t, w, store+req.URL.Path, req)
			return
		}
		_, _ = fmt.Fprint(w, `{"token":"the-token"}`)
	}
	l.elsewhere = serveTLS(t, certificate, other)
	l.plain = httptest.NewServer(http.HandlerFunc(other))
	t.Cleanup(l.plain.Close)
	return l
}

// certificateFor makes one that vouches for itself, for a name and for 127.0.0.1.
func certificateFor(t *testing.T, name string) tls.Certificate {
	t.Helper()
	key := newKey(t)
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotAfter: time.Now().Add(time.Hour), IsCA: true, BasicConstraintsValid: true,
		DNSNames: []string{name}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)},
	}
	der, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{der}, PrivateKey: key}
}

func serveTLS(t *testing.T, certificate tls.Certificate, handler http.HandlerFunc) *httptest.Server {
	t.Helper()
	server := httptest.NewUnstartedServer(handler)
	server.TLS = &tls.Config{Certificates: []tls.Certificate{certificate}}
	server.StartTLS()
	t.Cleanup(server.Close)
	return server
}

func relay(t *testing.T, w http.ResponseWriter, to string, req *http.Request) {
	t.Helper()
	passed, err := http.NewRequestWithContext(req.Context(), req.Method, to, http.NoBody)
	if err != nil {
		t.Error(err)
		return
	}
	answer, err := http.DefaultTransport.RoundTrip(passed)
	if err != nil {
		return // the test is over
	}
	defer answer.Body.Close()
	w.Header().Set("Content-Type", answer.Header.Get("Content-Type"))
	w.WriteHeader(answer.StatusCode)
	_, _ = io.Copy(w, answer.Body)
}

// as is the URL of a server under another name of its host.
func as(t *testing.T, host string, server *httptest.Server) string {
	t.Helper()
	at, err := url.Parse(server.URL)
	if err != nil {
		t.Fatal(err)
	}
	at.Host = net.JoinHostPort(host, at.Port())
	return at.String()
}

func (l *leading) ref() string { return strings.TrimPrefix(l.registry.URL, "https://") + "/pkg:v1" }

// pair is what names the host of one URL as that of the tokens of another.
func pair(t *testing.T, registry, realm string) string {
	t.Helper()
	return strings.TrimPrefix(registry, "https://") + "=" + strings.TrimPrefix(realm, "https://")
}

// entrust writes credentials for hosts: passwords, or tokens to get others for.
func (l *leading) entrust(t *testing.T, refresh bool, urls ...string) {
	t.Helper()
	entries := make([]string, 0, len(urls))
	for _, at := range urls {
		_, host, _ := strings.Cut(at, "://")
		entry := fmt.Sprintf(`%q:{"auth":%q}`, host, base64.StdEncoding.EncodeToString([]byte("robot:pa55word")))
		if refresh {
			entry = fmt.Sprintf(`%q:{"auth":%q,"identitytoken":"t0ken"}`, host, base64.StdEncoding.EncodeToString([]byte("<token>:")))
		}
		entries = append(entries, entry)
	}
	writeFile(t, l.authFile, `{"auths":{`+strings.Join(entries, ",")+`}}`)
}

// TestRealms: who may be asked for a token is not up to the registry alone.
func TestRealms(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		realm   func(*testing.T, *leading) string
		named   func(*testing.T, *leading) string // for the flag
		entrust func(*testing.T, *leading) []string
		refresh bool   // what is entrusted is a token, and no password
		want    string // in the error; empty for success
		trusted bool   // credentials arrive at the realm
	}{
		"of the registry's host": {
			realm:   func(_ *testing.T, l *leading) string { return l.elsewhere.URL + "/token" },
			entrust: func(_ *testing.T, l *leading) []string { return []string{l.registry.URL} }, trusted: true,
		},
		"of another site, without credentials": {
			realm: func(t *testing.T, l *leading) string { t.Helper(); return as(t, "localhost", l.elsewhere) + "/token" },
		},
		"of another site, with credentials": {
			realm:   func(t *testing.T, l *leading) string { t.Helper(); return as(t, "localhost", l.elsewhere) + "/token" },
			entrust: func(_ *testing.T, l *leading) []string { return []string{l.registry.URL} },
			want:    "would be sent there",
		},
		"of another site, with a token": {
			realm:   func(t *testing.T, l *leading) string { t.Helper(); return as(t, "localhost", l.elsewhere) + "/token" },
			entrust: func(_ *testing.T, l *leading) []string { return []string{l.registry.URL} }, refresh: true,
			want: "would be sent there",
		},
		"of another site with credentials of its own": {
			realm: func(t *testing.T, l *leading) string { t.Helper(); return as(t, "localhost", l.elsewhere) + "/token" },
			entrust: func(t *testing.T, l *leading) []string {
				t.Helper()
				return []string{l.registry.URL, as(t, "localhost", l.elsewhere)}
			},
			want: "would be sent there",
		},
		"of another site that is named": {
			realm: func(t *testing.T, l *leading) string { t.Helper(); return as(t, "localhost", l.elsewhere) + "/token" },
			named: func(t *testing.T, l *leading) string {
				t.Helper()
				return pair(t, l.registry.URL, as(t, "localhost", l.elsewhere))
			},
			entrust: func(_ *testing.T, l *leading) []string { return []string{l.registry.URL} }, trusted: true,
		},
		"of another site that is named, with a token": {
			realm: func(t *testing.T, l *leading) string { t.Helper(); return as(t, "localhost", l.elsewhere) + "/token" },
			named: func(t *testing.T, l *leading) string {
				t.Helper()
				return pair(t, l.registry.URL, as(t, "localhost", l.elsewhere))
			},
			entrust: func(_ *testing.T, l *leading) []string { return []string{l.registry.URL} }, refresh: true, trusted: true,
		},
		"of a host that leads to another": {
			realm: func(t *testing.T, l *leading) string {
				t.Helper()
				return l.registry.URL + "/elsewhere?to=" + url.QueryEscape(as(t, "localhost", l.elsewhere)+"/token")
			},
			entrust: func(_ *testing.T, l *leading) []string { return []string{l.registry.URL} },
			want:    "would be sent there",
		},
		"of a host that leads to another, with a token": {
			realm: func(t *testing.T, l *leading) string {
				t.Helper()
				return l.registry.URL + "/elsewhere?to=" + url.QueryEscape(as(t, "localhost", l.elsewhere)+"/token")
			},
			entrust: func(_ *testing.T, l *leading) []string { return []string{l.registry.URL} }, refresh: true,
			want: "307", // the body is not sent again
		},
		"not https": {
			realm: func(_ *testing.T, l *leading) string { return l.plain.URL + "/latest/meta-data" },
			want:  "it is not https",
		},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLeading(t)
			l.challenge = fmt.Sprintf(`Bearer realm=%q,service="s"`, tt.realm(t, l))
			if tt.named != nil {
				if err := l.config.Realms.Set(tt.named(t, l)); err != nil {
					t.Fatal(err)
				}
				l.restart(t)
			}
			if tt.entrust != nil {
				l.entrust(t, tt.refresh, tt.entrust(t, l)...)
			}
			_, err := l.pull(t, l.ref(), image.BundleContent)
			asked, entrusted := l.asked.Load(), l.entrusted.Load()
			if tt.want == "" {
				if err != nil || asked != 1 || entrusted == 1 != tt.trusted {
					t.Errorf("error = %v after %d requests, %d with credentials; want success after one, with credentials: %t", err, asked, entrusted, tt.trusted)
				}
				return
			}
			if registry := (*image.RegistryError)(nil); !errors.As(err, &registry) || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want a RegistryError with %q", err, tt.want)
			}
			if asked != 0 {
				t.Errorf("%d requests went where they must not", asked)
			}
		})
	}
}

// TestRedirects: layers may be elsewhere, over https, and not without end.
func TestRedirects(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		to   func(*testing.T, *leading) string
		want string // in the error; empty for success
	}{
		"to another site": {to: func(t *testing.T, l *leading) string { t.Helper(); return as(t, "localhost", l.elsewhere) }},
		"not https":       {to: func(_ *testing.T, l *leading) string { return l.plain.URL }, want: "it is not https"},
		"round and round": {to: func(_ *testing.T, l *leading) string { return l.registry.URL }, want: "stopped after 10 redirects"},
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := newLeading(t)
			l.redirect = tt.to(t, l)
			l.entrust(t, false, l.registry.URL)
			img, err := l.pull(t, l.ref(), image.BundleContent)
			if tt.want == "" {
				if err != nil || l.asked.Load() == 0 || l.entrusted.Load() != 0 {
					t.Fatalf("error = %v after %d requests, %d with credentials; want success without", err, l.asked.Load(), l.entrusted.Load())
				}
				wantFiles(t, img.Files, bundleFiles)
				return
			}
			if err == nil || !strings.Contains(err.Error(), tt.want) {
				t.Errorf("error = %v, want %q", err, tt.want)
			}
			if asked := l.asked.Load(); asked != 0 {
				t.Errorf("%d requests went where they must not", asked)
			}
		})
	}
}
