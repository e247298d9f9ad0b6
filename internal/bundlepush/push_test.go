package bundlepush_test

import (
	"encoding/base64"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlepush"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
)

// What is pushed is what is pulled, and the same files are the same image.
func TestPush(t *testing.T) {
	t.Parallel()
	registry, images := imagetest.Start(t)
	target := bundlepush.Target{Repository: registry.Host() + "/team/p"}
	operator := testkit.Operator{Package: "p", Version: "1.0.0", ConfigMaps: []string{"a"}}
	first, err := target.Push(t.Context(), bundlepush.Content{Files: operator.Bundle()})
	if err != nil {
		t.Fatal(err)
	}
	again, err := target.Push(t.Context(), bundlepush.Content{Files: operator.Bundle()})
	if err != nil || again != first || !strings.HasPrefix(first, registry.Host()+"/team/p@sha256:") {
		t.Errorf("got %s, and then %s: %v", first, again, err)
	}
	pulled, err := image.Once(t.Context(), images, image.Request{Ref: first, Select: image.BundleContent})
	if err != nil {
		t.Fatal(err)
	}
	defer pulled.Close()
	content, err := bundle.Parse(pulled.Files)
	if err != nil {
		t.Fatal(err)
	}
	if identity, err := content.Identity(); err != nil || identity.Name != "p.v1.0.0" || len(content.Others) == 0 {
		t.Errorf("got %+v, %v", identity, err)
	}
}

// What is no bundle, and no repository, is not pushed.
func TestPushFails(t *testing.T) {
	t.Parallel()
	registry, _ := imagetest.Start(t)
	operator := testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()
	for name, test := range map[string]struct {
		repository string
		files      fstest.MapFS
		want       string
	}{
		"no bundle":     {registry.Host() + "/pp", fstest.MapFS{}, "manifests: directory does not exist"},
		"no repository": {"P p", operator, "repository"},
		"no registry":   {"127.0.0.1:1/pp", operator, "pushing to 127.0.0.1:1/pp: "},
	} {
		if _, err := (bundlepush.Target{Repository: test.repository}).Push(t.Context(), bundlepush.Content{Files: test.files}); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("%s: got %v", name, err)
		}
	}
}

// The credentials of this machine for a registry go to it, and to nobody whom it names.
func TestCredentialsOfThisMachine(t *testing.T) {
	registry, _ := imagetest.Start(t)
	entrusted := ""
	tokens := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
		entrusted, _, _ = req.BasicAuth()
		_, _ = fmt.Fprint(w, `{"token":"the-token"}`)
	}))
	t.Cleanup(tokens.Close)
	elsewhere := strings.Replace(strings.TrimPrefix(tokens.URL, "http://"), "127.0.0.1", "localhost", 1)
	registry.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if req.Header.Get("Authorization") != "Bearer the-token" {
				w.Header().Set("WWW-Authenticate", fmt.Sprintf("Bearer realm=%q", "http://"+elsewhere+"/token"))
				w.WriteHeader(http.StatusUnauthorized)
				return
			}
			next.ServeHTTP(w, req)
		})
	})
	dir := t.TempDir()
	t.Setenv("DOCKER_CONFIG", dir)
	config := fmt.Sprintf(`{"auths":{%q:{"auth":%q}}}`, registry.Host(), base64.StdEncoding.EncodeToString([]byte("robot:pa55word")))
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(config), 0o600); err != nil {
		t.Fatal(err)
	}
	target := bundlepush.Target{Repository: registry.Host() + "/team/p"}
	operator := testkit.Operator{Package: "p", Version: "1.0.0"}.Bundle()
	named := registry.Host() + "=http://" + elsewhere
	if _, err := target.Push(t.Context(), bundlepush.Content{Files: operator}); err == nil || !strings.Contains(err.Error(), "--registry-realm="+named) || entrusted != "" {
		t.Errorf("%q went elsewhere: %v", entrusted, err)
	}
	if err := target.Realms.Set(named); err != nil {
		t.Fatal(err)
	}
	if _, err := target.Push(t.Context(), bundlepush.Content{Files: operator}); err != nil || entrusted != "robot" {
		t.Errorf("%q went to where it should: %v", entrusted, err)
	}
}
