package image_test

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"path/filepath"
	"strings"
	"testing"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// mirrored is a registries.conf for registry.test with mirrors at the registry of the fixture
// and at paths below it.
func (f *fixture) mirrored(rest string, mirrors ...string) string {
	var text strings.Builder
	text.WriteString("[[registry]]\nlocation = \"registry.test\"\n" + rest + "\n")
	for _, mirror := range mirrors {
		location, use, _ := strings.Cut(mirror, " ")
		fmt.Fprintf(&text, "[[registry.mirror]]\nlocation = %q\ninsecure = true\n", f.registry.Host()+location)
		if use != "" {
			fmt.Fprintf(&text, "pull-from-mirror = %q\n", use)
		}
	}
	return text.String()
}

// Where the source is never contacted and no mirror has an image, each of them is named.
func TestAllMirrorsAreDown(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	writeFile(t, f.config.RegistriesConf, f.mirrored("blocked = true", "/one", "/two"))
	_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
	if _, is := errors.AsType[*image.RegistryError](err); !is {
		t.Fatalf("error is %v, want a RegistryError", err)
	}
	for _, want := range []string{f.registry.Host() + "/one/pkg:v1", f.registry.Host() + "/two/pkg:v1", "registry.test", "blocked"} {
		if !strings.Contains(err.Error(), want) {
			t.Errorf("error is %v, which does not name %s", err, want)
		}
	}
}

// A mirror for digests is not asked for a tag, nor one for tags for a digest.
func TestMirrorsOfDigestsAndTags(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	d := f.push(t, mapFS(bundleFiles), nil)
	for _, repository := range []string{"digests/pkg:v1", "tags/pkg:v1"} {
		if _, err := f.registry.Push(t.Context(), repository, mapFS(bundleFiles), nil); err != nil {
			t.Fatal(err)
		}
	}
	writeFile(t, f.config.RegistriesConf, f.mirrored("blocked = true", "/digests digest-only", "/tags tag-only"))
	for ref, want := range map[string]string{"registry.test/pkg:v1": "/tags/", "registry.test/pkg@" + d: "/digests/"} {
		f.registry.ResetRequests()
		f.mustPull(t, ref, image.BundleContent)
		for _, request := range f.registry.Requests() {
			if strings.Contains(request.Path, "/manifests/") && !strings.Contains(request.Path, want) {
				t.Errorf("%s was asked for by %s", request.Path, ref)
			}
		}
		// What is cached has no need of a mirror.
		f.config.Dir = filepath.Join(t.TempDir(), "cache")
		f.restart(t)
	}
}

// Mirrors that others give are asked for by each pull, and are waited for no longer than it may
// take.
func TestRegistriesAreGiven(t *testing.T) {
	t.Parallel()
	var file string
	problem := errors.New("nobody knows")
	f := newFixture(t, func(config *image.Config) {
		config.Registries = func(ctx context.Context) (string, error) { return file, errors.Join(ctx.Err(), problem) }
	})
	f.push(t, mapFS(bundleFiles), nil)
	if _, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent); !errors.Is(err, problem) {
		t.Errorf("error is %v", err)
	}
	problem = nil
	file = writeFile(t, filepath.Join(t.TempDir(), "given.conf"), f.mirrored("blocked = true", "/elsewhere"))
	_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
	if err == nil || !strings.Contains(err.Error(), "/elsewhere/pkg:v1") {
		t.Errorf("error is %v", err)
	}
	// Nobody has written that file, so that its name says nothing about what to edit.
	const want = "registry.test is blocked by registries.conf or by a mirror set of the cluster (mirrorSourcePolicy)"
	if strings.Contains(err.Error(), file) || !strings.HasSuffix(err.Error(), want) {
		t.Errorf("error is %v, want the end %q", err, want)
	}
	file = writeFile(t, filepath.Join(t.TempDir(), "given.conf"), f.mirrored("blocked = true", ""))
	f.mustPull(t, "registry.test/pkg:v1", image.BundleContent)
}

// A mirror that sends whoever asks back to the source that is blocked is not followed.
func TestMirrorsLeadToABlockedSource(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.push(t, mapFS(bundleFiles), nil)
	other, err := testkit.StartRegistry()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = other.Close() })
	source := strings.Replace(other.Host(), "127.0.0.1", "localhost", 1)
	f.registry.Use(func(next http.Handler) http.Handler {
		return http.HandlerFunc(func(w http.ResponseWriter, req *http.Request) {
			if strings.Contains(req.URL.Path, "/blobs/") {
				http.Redirect(w, req, "http://"+source+req.URL.Path, http.StatusTemporaryRedirect)
				return
			}
			next.ServeHTTP(w, req)
		})
	})
	text := fmt.Sprintf("[[registry]]\nlocation = %q\nblocked = true\n[[registry.mirror]]\nlocation = %q\ninsecure = true\n", source, f.registry.Host())
	writeFile(t, f.config.RegistriesConf, text)
	_, err = f.pull(t, source+"/pkg:v1", image.BundleContent)
	if _, is := errors.AsType[*image.LeadError](err); !is {
		t.Errorf("error is %v, want a LeadError", err)
	}
	if requests := other.Requests(); len(requests) > 0 {
		t.Errorf("the source was asked for %v", requests)
	}
}

func TestEndpoints(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	digest := "@sha256:" + zeroHex
	for name, tt := range map[string]struct {
		conf, ref, want, err string
	}{
		"not named":           {"", "registry.test/pkg:v1", "registry.test/pkg:v1 false", ""},
		"mirrors first":       {f.mirrored("", "/m"), "registry.test/pkg:v1", f.registry.Host() + "/m/pkg:v1 true, registry.test/pkg:v1 false", ""},
		"tag with a digest":   {"", "registry.test/pkg:v1" + digest, "registry.test/pkg" + digest + " false", ""},
		"blocked, a mirror":   {f.mirrored("blocked = true", "/m"), "registry.test/pkg:v1", f.registry.Host() + "/m/pkg:v1 true", ""},
		"blocked, none":       {f.mirrored("blocked = true"), "registry.test/pkg:v1", "", "registries.conf blocks registry.test"},
		"blocked, not for it": {f.mirrored("blocked = true", "/m digest-only"), "registry.test/pkg:v1", "", "registries.conf blocks registry.test"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			file := writeFile(t, filepath.Join(t.TempDir(), "registries.conf"), tt.conf)
			endpoints, err := image.Endpoints(file, tt.ref)
			var got []string
			for _, one := range endpoints {
				got = append(got, fmt.Sprintf("%s %t", one.Ref, one.Insecure))
			}
			if text := strings.Join(got, ", "); text != tt.want || (err == nil) != (tt.err == "") || err != nil && err.Error() != tt.err {
				t.Errorf("got %s (%v), want %s", text, err, tt.want)
			}
		})
	}
}

func TestCanonical(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]string{
		"nginx": "docker.io/library/nginx:latest", "acme/x:v1": "docker.io/acme/x:v1", "quay.io/x": "quay.io/x:latest",
		"quay.io/x:v1@sha256:" + zeroHex: "quay.io/x@sha256:" + zeroHex, "Bad Name": "",
	} {
		got, err := image.Canonical(text)
		if got != want || (err == nil) != (want != "") {
			t.Errorf("%q is %q (%v), want %q", text, got, err, want)
		}
	}
}
