package image_test

import (
	"context"
	"encoding/base64"
	"errors"
	"path/filepath"
	"testing"

	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

var movedFiles = map[string]string{"manifests/csv.yaml": "moved"}

// TestPullBeforeMove asks for what a tag stood for before it moved.
func TestPullBeforeMove(t *testing.T) {
	t.Parallel()
	// before pulls the image by its tag and returns the request to repeat.
	before := func(t *testing.T, f *fixture) image.Request {
		t.Helper()
		f.push(t, mapFS(bundleFiles), nil)
		img := f.mustPull(t, "registry.test/pkg:v1", image.BundleContent)
		img.Close()
		f.push(t, mapFS(movedFiles), nil)
		f.registry.ResetRequests()
		return image.Request{Ref: "registry.test/pkg:v1", Select: image.BundleContent, Digest: img.Digest}
	}
	wantPulled := func(t *testing.T, f *fixture, req image.Request, want map[string]string) {
		t.Helper()
		img, err := f.puller.Pull(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		defer img.Close()
		wantFiles(t, img.Files, want)
	}
	t.Run("from the cache, without the registry", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, nil)
		req := before(t, f)
		wantPulled(t, f, req, bundleFiles)
		if asked := f.registry.Requests(); len(asked) != 0 {
			t.Errorf("the registry was asked for %v", asked)
		}
	})
	t.Run("from the registry, where the cache has it no more", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, nil)
		req := before(t, f)
		if _, err := f.puller.Sweep(func(digest.Digest) bool { return false }); err != nil {
			t.Fatal(err)
		}
		wantPulled(t, f, req, bundleFiles)
	})
	t.Run("nowhere", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, nil)
		req := before(t, f)
		req.Digest = "sha256:" + zeroHex
		if _, err := f.puller.Pull(t.Context(), req); !errors.Is(err, image.ErrNotFound) {
			t.Errorf("error = %v, want ErrNotFound", err)
		}
	})
	t.Run("not under a tag that the policy has not judged", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, nil)
		req := before(t, f)
		writeFile(t, f.config.PolicyFile, `{"default":[{"type":"reject"}]}`)
		_, err := f.puller.Pull(t.Context(), req)
		if rejected := (*image.PolicyError)(nil); !errors.As(err, &rejected) {
			t.Errorf("error = %v, want a PolicyError", err)
		}
	})
	t.Run("a reference with a digest has its own", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, nil)
		req := before(t, f)
		req.Ref = "registry.test/pkg@" + f.push(t, mapFS(movedFiles), nil)
		wantPulled(t, f, req, movedFiles)
	})
	t.Run("no digest", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, nil)
		req := before(t, f)
		req.Digest = "sha256:../../x"
		_, err := f.puller.Pull(t.Context(), req)
		if invalid := (*image.ReferenceError)(nil); !errors.As(err, &invalid) {
			t.Errorf("error = %v, want a ReferenceError", err)
		}
	})
}

// TestAuthFileOfRequest brings credentials along that the puller does not have.
func TestAuthFileOfRequest(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	ref := "registry.test/pkg@" + f.push(t, mapFS(bundleFiles), nil)
	f.registry.Use(testkit.RequireBasicAuth("robot", "own"))
	auth := base64.StdEncoding.EncodeToString([]byte("robot:own"))
	file := writeFile(t, filepath.Join(t.TempDir(), "auth.json"), `{"auths":{"`+f.registry.Host()+`":{"auth":"`+auth+`"}}}`)
	asked := 0
	req := image.Request{Ref: ref, Select: image.BundleContent, AuthFile: func(context.Context) string {
		asked++
		return file
	}}
	for range 2 {
		img, err := f.puller.Pull(t.Context(), req)
		if err != nil {
			t.Fatal(err)
		}
		img.Close()
	}
	if asked != 1 {
		t.Errorf("asked %d times for credentials, want once: the second pull needs no registry", asked)
	}
	if _, err := f.puller.Sweep(func(digest.Digest) bool { return false }); err != nil {
		t.Fatal(err)
	}
	_, err := f.pull(t, ref, image.BundleContent)
	if refused := (*image.RegistryError)(nil); !errors.As(err, &refused) || !refused.Refused() {
		t.Errorf("without them: error = %v, want a RegistryError that says refused", err)
	}
}
