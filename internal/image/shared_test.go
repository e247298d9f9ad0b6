package image_test

import (
	"context"
	"testing"
	"time"

	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// TestSlowReferenceHoldsUpNoOther: that somebody offers the same digest says nothing
// about when, or whether, they will have sent it.
func TestSlowReferenceHoldsUpNoOther(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	d := f.push(t, mapFS(bundleFiles), nil)
	if _, err := f.registry.Push(t.Context(), "slow:v1", mapFS(bundleFiles), nil); err != nil {
		t.Fatal(err)
	}
	release := make(chan struct{})
	f.registry.Use(testkit.Stall("/slow/blobs/", release))
	slow := make(chan error, 1)
	go func() {
		img, err := f.puller.Pull(t.Context(), image.Request{Ref: "registry.test/slow@" + d, Select: image.BundleContent})
		if err == nil {
			img.Close()
		}
		slow <- err
	}()
	for f.registry.Count("/slow/blobs/") == 0 {
		time.Sleep(time.Millisecond)
	}

	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second) // for the failure only
	defer cancel()
	img, err := f.puller.Pull(ctx, image.Request{Ref: "registry.test/pkg@" + d, Select: image.BundleContent})
	if err != nil {
		t.Fatalf("a pull under another reference fails while one is slow: %v", err)
	}
	defer img.Close()
	wantFiles(t, img.Files, bundleFiles)
	if _, err := f.puller.Sweep(func(digest.Digest) bool { return false }); err != nil {
		t.Fatal(err)
	}

	close(release)
	if err := <-slow; err != nil {
		t.Errorf("the slow one ends with %v, want success", err)
	}
	f.wantCached(t, 1)
	wantFiles(t, img.Files, bundleFiles)
	f.registry.ResetRequests()
	for _, ref := range []string{"registry.test/slow@" + d, "registry.test/pkg@" + d} {
		wantFiles(t, f.mustPull(t, ref, image.BundleContent).Files, bundleFiles)
	}
	if requests := f.registry.Requests(); len(requests) != 0 {
		t.Errorf("what was verified for both is asked for again: %v", requests)
	}
}
