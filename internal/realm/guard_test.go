package realm_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"sync/atomic"
	"testing"

	"github.com/google/go-containerregistry/pkg/authn"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/remote"

	"github.com/clusterextensions/operator-controller/internal/realm"
)

// hosts are a registry over TLS that wants tokens, and all other hosts.
type hosts struct {
	registry, elsewhere *httptest.Server
	realm               string
	// entrusted are the requests elsewhere with a password or a token in them.
	entrusted, asked atomic.Int32
}

func start(t *testing.T) *hosts {
	t.Helper()
	h := &hosts{}
	store := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	h.registry = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		switch {
		case req.URL.Path == "/leads":
			http.Redirect(w, req, "https://below.registry.test/token", http.StatusFound)
		case req.URL.Path == "/token":
			_, _ = fmt.Fprint(w, `{"token":"the-token"}`)
		case req.Header.Get("Authorization") != "Bearer the-token":
			w.Header().Set("WWW-Authenticate", fmt.Sprintf(`Bearer realm=%q,service="s"`, h.realm))
			w.WriteHeader(http.StatusUnauthorized)
		default:
			store.ServeHTTP(w, req)
		}
	}))
	t.Cleanup(h.registry.Close)
	h.elsewhere = httptest.NewTLSServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		h.asked.Add(1)
		if req.Header.Get("Authorization") != "" || req.FormValue("refresh_token") != "" {
			h.entrusted.Add(1)
		}
		_, _ = fmt.Fprint(w, `{"token":"the-token"}`)
	}))
	t.Cleanup(h.elsewhere.Close)
	return h
}

// transport reaches all hosts, by whatever name; that of the registry is given.
func (h *hosts) transport(registry string) http.RoundTripper {
	server, _ := h.registry.Client().Transport.(*http.Transport)
	transport := server.Clone()
	transport.TLSClientConfig.ServerName = "example.com"
	transport.DialContext = func(ctx context.Context, network, address string) (net.Conn, error) {
		to := h.elsewhere
		if address == registry+":443" {
			to = h.registry
		}
		return new(net.Dialer).DialContext(ctx, network, to.Listener.Addr().String())
	}
	return transport
}

// TestGuard pushes to a registry that wants a token from somewhere.
func TestGuard(t *testing.T) {
	t.Parallel()
	password := authn.FromConfig(authn.AuthConfig{Username: "robot", Password: "pa55word"})
	token := authn.FromConfig(authn.AuthConfig{IdentityToken: "t0ken"})
	tests := map[string]struct {
		realm       string
		added       []string
		as          authn.Authenticator
		refused     bool
		isEntrusted bool
	}{
		"itself":                     {realm: "https://registry.test/token", as: password},
		"itself, with a token":       {realm: "https://registry.test/token", as: token},
		"elsewhere":                  {realm: "https://collect.test/token", as: password, refused: true},
		"elsewhere, with a token":    {realm: "https://collect.test/token", as: token, refused: true},
		"elsewhere, with nothing":    {realm: "https://collect.test/token", as: authn.Anonymous},
		"named":                      {realm: "https://auth.test/token", added: []string{"registry.test=auth.test"}, as: password, isEntrusted: true},
		"named, with a token":        {realm: "https://auth.test/token", added: []string{"registry.test=auth.test"}, as: token, isEntrusted: true},
		"itself, which leads beside": {realm: "https://registry.test/leads", as: password}, // without them
	}
	for name, tt := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			h := start(t)
			h.realm = tt.realm
			err := push(t, "registry.test/team/p:v1", tt.as, added(t, tt.added...).Guard("registry.test", h.transport("registry.test")))
			refusal, isRefused := errors.AsType[*realm.Error](err)
			if isRefused != tt.refused || err != nil && !isRefused {
				t.Fatalf("error %v, want a refusal: %t", err, tt.refused)
			}
			if isRefused && (refusal.Registry != "registry.test" || h.asked.Load() > 0) {
				t.Errorf("%v, after %d requests", refusal, h.asked.Load())
			}
			if isEntrusted := h.entrusted.Load() > 0; isEntrusted != tt.isEntrusted {
				t.Errorf("credentials went elsewhere: %t", isEntrusted)
			}
		})
	}
}

// TestGuardOfDockerHub: the library asks another host than the one that credentials are kept for.
func TestGuardOfDockerHub(t *testing.T) {
	t.Parallel()
	h := start(t)
	h.realm = "https://auth.docker.io/token"
	password := authn.FromConfig(authn.AuthConfig{Username: "robot", Password: "pa55word"})
	for _, registry := range []string{"registry-1.docker.io", "index.docker.io"} {
		if err := push(t, "docker.io/team/p:v1", password, (realm.Realms{}).Guard(registry, h.transport("index.docker.io"))); err != nil {
			t.Errorf("%s: %v", registry, err)
		}
	}
}

func push(t *testing.T, image string, as authn.Authenticator, through http.RoundTripper) error {
	t.Helper()
	tag, err := name.NewTag(image)
	if err != nil {
		t.Fatal(err)
	}
	return remote.Write(tag, empty.Image, remote.WithContext(t.Context()), remote.WithAuth(as), remote.WithTransport(through))
}
