package image_test

import (
	"context"
	"encoding/base64"
	"errors"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

const zeroHex = "0000000000000000000000000000000000000000000000000000000000000000"

func imageDigest(data []byte) digest.Digest { return digest.FromBytes(data) }

func TestRegistryFailures(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		fault    func(http.Handler) http.Handler
		ref      string
		notFound bool
		want     string // the text, if it is a contract
	}{
		"no such tag": {
			ref: "registry.test/pkg:v9", notFound: true,
			want: "error creating image source: reading manifest v9 in HOST/pkg: manifest unknown: Unknown manifest",
		},
		"no such repository": {ref: "registry.test/other:v1", notFound: true},
		"no such digest":     {ref: "registry.test/pkg@sha256:" + zeroHex, notFound: true},
		"bare 404":           {fault: testkit.FailPath("/manifests/", http.StatusNotFound), ref: "registry.test/pkg:v1", notFound: true},
		"manifest 500":       {fault: testkit.FailPath("/manifests/", http.StatusInternalServerError), ref: "registry.test/pkg:v1"},
		"layer 500":          {fault: testkit.FailPath("/blobs/", http.StatusInternalServerError), ref: "registry.test/pkg:v1"},
		"layer 404":          {fault: testkit.FailPath("/blobs/", http.StatusNotFound), ref: "registry.test/pkg:v1", notFound: true},
		"registry down":      {fault: testkit.FailPath("", http.StatusServiceUnavailable), ref: "registry.test/pkg:v1"},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.push(t, mapFS(bundleFiles), nil)
			if tc.fault != nil {
				f.registry.Use(tc.fault)
			}
			_, err := f.pull(t, tc.ref, image.BundleContent)
			if registry := (*image.RegistryError)(nil); !errors.As(err, &registry) {
				t.Fatalf("error = %v, want a RegistryError", err)
			}
			if errors.Is(err, image.ErrNotFound) != tc.notFound || errors.Is(err, image.ErrContent) {
				t.Errorf("error = %v, not found: want %t", err, tc.notFound)
			}
			if want := strings.ReplaceAll(tc.want, "HOST", f.registry.Host()); want != "" && err.Error() != want {
				t.Errorf("error = %q, want %q", err, want)
			}
			f.wantCached(t, 0)
		})
	}
}

func TestWrongBytes(t *testing.T) {
	t.Parallel()
	archive, err := testkit.TarFS(mapFS(bundleFiles))
	if err != nil {
		t.Fatal(err)
	}
	right := testkit.Gzip(archive)
	hostile, err := testkit.Tar(testkit.Symlink("manifests/l", "/"))
	if err != nil {
		t.Fatal(err)
	}
	// A blob of the right size is judged by its digest alone.
	forged := append(testkit.Gzip(hostile), make([]byte, len(right))...)[:len(right)]
	tests := map[string]func(http.Handler) http.Handler{
		"manifest":          testkit.ReplaceBody("/manifests/", imagespec.MediaTypeImageManifest, []byte(`{"schemaVersion":2}`)),
		"layer, same size":  testkit.ReplaceBody("/blobs/"+string(imageDigest(right)), "", forged),
		"layer, longer":     testkit.ReplaceBody("/blobs/"+string(imageDigest(right)), "", append(slices.Clip(right), 'x')),
		"layer, plain text": testkit.ReplaceBody("/blobs/"+string(imageDigest(right)), "", make([]byte, len(right))),
	}
	for name, fault := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			d := f.pushBlobs(t, nil, testkit.Layer{Blob: right})
			f.registry.Use(fault)
			_, err := f.pull(t, "registry.test/pkg@"+d, image.BundleContent)
			if wrong := (*image.DigestError)(nil); !errors.As(err, &wrong) {
				t.Errorf("error = %v, want a DigestError", err)
			}
			if errors.Is(err, image.ErrContent) {
				t.Errorf("error = %v: forged bytes condemn the image", err)
			}
			f.wantCached(t, 0)
			f.registry.Heal()
			wantFiles(t, f.mustPull(t, "registry.test/pkg@"+d, image.BundleContent).Files, bundleFiles)
		})
	}
}

func TestTruncatedLayer(t *testing.T) {
	t.Parallel()
	for name, fault := range map[string]func(http.Handler) http.Handler{
		"connection dropped": testkit.CutBody("/blobs/", 100),
		"clean end":          testkit.ReplaceBody("/blobs/", "", []byte("short")),
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.push(t, mapFS(bundleFiles), nil)
			f.registry.Use(fault)
			_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
			if registry := (*image.RegistryError)(nil); !errors.As(err, &registry) || !errors.Is(err, io.ErrUnexpectedEOF) {
				t.Errorf("error = %v, want a RegistryError for an unexpected end", err)
			}
			f.wantCached(t, 0)
		})
	}
}

func TestSilentRegistry(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]string{"manifest": "/manifests/", "layer": "/blobs/"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(config *image.Config) { config.Limits.NetworkTimeout = 300 * time.Millisecond })
			f.push(t, mapFS(bundleFiles), nil)
			f.registry.Use(testkit.Stall(part, nil))
			_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
			if registry := (*image.RegistryError)(nil); !errors.As(err, &registry) || !errors.Is(err, os.ErrDeadlineExceeded) {
				t.Errorf("error = %v, want a RegistryError for a timeout", err)
			}
			if errors.Is(err, context.Canceled) || errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("error = %v looks as if the caller had given up", err)
			}
			f.wantCached(t, 0)
		})
	}
}

// TestDrippingRegistry: bytes that come one by one are no silence, and end all the
// same, with a text that says so. A registry that is fast enough is not hurt by it.
func TestDrippingRegistry(t *testing.T) {
	t.Parallel()
	f := newFixture(t, func(config *image.Config) {
		config.Limits.RateWindow, config.Limits.RateBytes = 20*time.Millisecond, 1<<20
	})
	f.push(t, mapFS(bundleFiles), nil)
	f.registry.Use(testkit.Drip("/blobs/", time.Millisecond))
	_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
	if registry := (*image.RegistryError)(nil); !errors.As(err, &registry) || !errors.Is(err, os.ErrDeadlineExceeded) ||
		!strings.Contains(err.Error(), "the registry is too slow: less than 1048576 bytes came within 20ms of waiting") {
		t.Errorf("error = %v, want a RegistryError for a registry that is too slow", err)
	}
	f.wantCached(t, 0)
	f.registry.Heal()
	wantFiles(t, f.mustPull(t, "registry.test/pkg:v1", image.BundleContent).Files, bundleFiles)
}

func TestCancelledPull(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]string{"manifest": "/manifests/", "layer": "/blobs/"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.push(t, mapFS(bundleFiles), nil)
			ctx, cancel := context.WithCancel(t.Context())
			f.registry.Use(func(next http.Handler) http.Handler {
				return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
					if strings.Contains(req.URL.Path, part) {
						cancel()
						<-req.Context().Done()
						return
					}
					next.ServeHTTP(w, req)
				})
			})
			_, err := f.puller.Pull(ctx, image.Request{Ref: "registry.test/pkg:v1", Select: image.BundleContent})
			if !errors.Is(err, context.Canceled) {
				t.Errorf("error = %v, want context.Canceled", err)
			}
			f.wantCached(t, 0)
		})
	}
}

func TestAuth(t *testing.T) {
	t.Parallel()
	const user, password = "robot", "pa55word"
	authFile := filepath.Join(t.TempDir(), "auth.json")
	f := newFixture(t, func(config *image.Config) { config.AuthFile = authFile })
	f.push(t, mapFS(bundleFiles), nil)
	f.registry.Use(testkit.RequireBasicAuth(user, password))
	write := func(password string) {
		auth := base64.StdEncoding.EncodeToString([]byte(user + ":" + password))
		writeFile(t, authFile, `{"auths":{"`+f.registry.Host()+`":{"auth":"`+auth+`"}}}`)
	}

	_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
	if registry := (*image.RegistryError)(nil); !errors.As(err, &registry) || errors.Is(err, image.ErrNotFound) {
		t.Errorf("without an auth file: error = %v, want a RegistryError", err)
	}
	write("wr0ng-s3cret")
	_, err = f.pull(t, "registry.test/pkg:v1", image.BundleContent)
	if registry := (*image.RegistryError)(nil); !errors.As(err, &registry) || strings.Contains(err.Error(), "s3cret") {
		t.Errorf("with the wrong password: error = %v, want a RegistryError without it", err)
	}
	write(password)
	wantFiles(t, f.mustPull(t, "registry.test/pkg:v1", image.BundleContent).Files, bundleFiles)
}

func TestMalformedConfiguration(t *testing.T) {
	t.Parallel()
	tests := map[string]func(t *testing.T, config *image.Config){
		"auth file":          func(t *testing.T, config *image.Config) { config.AuthFile = writeFile(t, config.Dir+"-auth", "{") },
		"registries.conf":    func(t *testing.T, config *image.Config) { writeFile(t, config.RegistriesConf, "[[") },
		"no registries.conf": func(_ *testing.T, config *image.Config) { config.RegistriesConf += "-missing" },
	}
	for name, edit := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.push(t, mapFS(bundleFiles), nil)
			edit(t, &f.config)
			f.restart(t)
			if _, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent); err == nil {
				t.Error("Pull succeeded")
			}
		})
	}
}
