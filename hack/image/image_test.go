package main

import (
	"archive/tar"
	"errors"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/empty"
	"github.com/google/go-containerregistry/pkg/v1/layout"
	"github.com/google/go-containerregistry/pkg/v1/random"
	"github.com/google/go-containerregistry/pkg/v1/remote"
)

func must[T any](t *testing.T) func(T, error) T {
	t.Helper()
	return func(value T, err error) T {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		return value
	}
}

// The base has the same digest however often it is made, and a user that is not root.
func TestBase(t *testing.T) {
	t.Parallel()
	first, second := must[v1.ImageIndex](t)(newBase()), must[v1.ImageIndex](t)(newBase())
	if a, b := must[v1.Hash](t)(first.Digest()), must[v1.Hash](t)(second.Digest()); a != b {
		t.Errorf("the base is %s and then %s", a, b)
	}
	var platforms, files []string
	for _, descriptor := range must[*v1.IndexManifest](t)(first.IndexManifest()).Manifests {
		platforms = append(platforms, descriptor.Platform.String())
		image := must[v1.Image](t)(first.Image(descriptor.Digest))
		if config := must[*v1.ConfigFile](t)(image.ConfigFile()); config.Config.User != "65532:65532" || config.Architecture != descriptor.Platform.Architecture {
			t.Errorf("the base for %s is for %s, and user %q", descriptor.Platform, config.Architecture, config.Config.User)
		}
		files = names(t, image)
	}
	if diff := cmp.Diff([]string{"linux/amd64", "linux/arm64"}, platforms); diff != "" {
		t.Error(diff)
	}
	want := []string{"etc/", "etc/group", "etc/passwd", "etc/ssl/", "etc/ssl/certs/", "tmp/", "var/", "var/cache/"}
	if diff := cmp.Diff(want, files); diff != "" {
		t.Error(diff)
	}
}

func names(t *testing.T, image v1.Image) []string {
	t.Helper()
	layers := must[[]v1.Layer](t)(image.Layers())
	if len(layers) != 1 {
		t.Fatalf("the base has %d layers", len(layers))
	}
	reader := tar.NewReader(must[io.ReadCloser](t)(layers[0].Uncompressed()))
	var found []string
	for {
		header, err := reader.Next()
		if errors.Is(err, io.EOF) {
			return found
		}
		if err != nil {
			t.Fatal(err)
		}
		found = append(found, header.Name)
	}
}

// Who takes the address for a proxy gets the base by its name, and other hosts as well.
func TestServeBase(t *testing.T) {
	t.Parallel()
	served := must[*servedBase](t)(serveBase(t.Context()))
	t.Cleanup(served.Close)
	proxied := &http.Transport{Proxy: func(r *http.Request) (*url.URL, error) {
		if r.URL.Scheme != "http" {
			return nil, errors.New("there is no proxy for it")
		}
		return &url.URL{Scheme: "http", Host: served.address}, nil
	}}
	t.Cleanup(proxied.CloseIdleConnections)

	got := must[v1.ImageIndex](t)(remote.Index(must[name.Reference](t)(name.ParseReference("base.localhost/static")), remote.WithTransport(proxied)))
	want := must[v1.ImageIndex](t)(newBase())
	if a, b := must[v1.Hash](t)(got.Digest()), must[v1.Hash](t)(want.Digest()); a != b {
		t.Errorf("got %s, want %s", a, b)
	}

	elsewhere := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { _, _ = io.WriteString(w, r.Host) }))
	t.Cleanup(elsewhere.Close)
	response := must[*http.Response](t)((&http.Client{Transport: proxied}).Get(elsewhere.URL))
	defer response.Body.Close()
	if body := string(must[[]byte](t)(io.ReadAll(response.Body))); body != strings.TrimPrefix(elsewhere.URL, "http://") {
		t.Errorf("another host was asked as %q", body)
	}
}

// A layout is named without another digest, and pushed whole under that digest.
func TestNameAndPush(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(registry.New(registry.Logger(log.New(io.Discard, "", 0))))
	t.Cleanup(server.Close)
	repository := strings.TrimPrefix(server.URL, "http://") + "/operator-controller"
	for what, add := range map[string]func(layout.Path) error{
		"one":  func(path layout.Path) error { return path.AppendImage(must[v1.Image](t)(random.Image(10, 2))) },
		"many": func(path layout.Path) error { return path.AppendIndex(must[v1.ImageIndex](t)(random.Index(10, 1, 2))) },
	} {
		dir := filepath.Join(t.TempDir(), "image")
		path := must[layout.Path](t)(layout.Write(dir, empty.Index))
		if err := add(path); err != nil {
			t.Fatal(err)
		}
		if err := must[*image](t)(openImage(dir)).call("localhost/operator-controller:" + what); err != nil {
			t.Fatal(err)
		}
		named := must[*image](t)(openImage(dir))
		want := map[string]string{
			"io.containerd.image.name":          "localhost/operator-controller:" + what,
			"org.opencontainers.image.ref.name": "localhost/operator-controller:" + what,
		}
		if diff := cmp.Diff(want, named.descriptor.Annotations); diff != "" {
			t.Error(diff)
		}
		pushed := must[string](t)(named.push(t.Context(), repository+":"+what))
		if want := repository + "@" + named.descriptor.Digest.String(); pushed != want {
			t.Errorf("pushed %s, want %s", pushed, want)
		}
		descriptor := must[*remote.Descriptor](t)(remote.Get(must[name.Reference](t)(name.ParseReference(repository + ":" + what))))
		if descriptor.Digest != named.descriptor.Digest {
			t.Errorf("%s is %s, want %s", what, descriptor.Digest, named.descriptor.Digest)
		}
	}
}

// What is no image layout is not replaced.
func TestClear(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	empty, precious, old := filepath.Join(dir, "empty"), filepath.Join(dir, "precious"), filepath.Join(dir, "old")
	for path, file := range map[string]string{empty: "", precious: "file", old: "oci-layout"} {
		if err := os.Mkdir(path, 0o750); err != nil {
			t.Fatal(err)
		}
		if file != "" {
			if err := os.WriteFile(filepath.Join(path, file), nil, 0o600); err != nil {
				t.Fatal(err)
			}
		}
	}
	for path, good := range map[string]bool{empty: true, precious: false, old: true, filepath.Join(dir, "none"): true} {
		if err := clearAway(path); (err == nil) != good {
			t.Errorf("%s: %v", path, err)
		}
	}
	if _, err := os.Stat(filepath.Join(precious, "file")); err != nil {
		t.Error(err)
	}
}
