package image_test

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/opencontainers/go-digest"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
)

// BenchmarkPull pulls a bundle of twelve files of 16 KiB: from a registry on
// this machine, and from the cache.
func BenchmarkPull(b *testing.B) {
	registry, config := imagetest.Start(b)
	puller, err := image.New(config)
	if err != nil {
		b.Fatal(err)
	}
	files := fstest.MapFS{}
	for i := range 12 {
		sum := sha256.Sum256([]byte{byte(i)})
		files[fmt.Sprintf("manifests/%d.yaml", i)] = &fstest.MapFile{Data: []byte(strings.Repeat(hex.EncodeToString(sum[:]), 256))}
	}
	pushed, err := registry.Push(b.Context(), "pkg", files, nil)
	if err != nil {
		b.Fatal(err)
	}
	request := image.Request{Ref: registry.Host() + "/pkg@" + pushed, Select: image.BundleContent}
	pull := func(b *testing.B) {
		b.Helper()
		pulled, err := puller.Pull(b.Context(), request)
		if err != nil {
			b.Fatal(err)
		}
		pulled.Close()
	}
	b.Run("registry", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			pull(b)
			if _, err := puller.Sweep(func(digest.Digest) bool { return false }); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("cache", func(b *testing.B) {
		b.ReportAllocs()
		pull(b)
		for b.Loop() {
			pull(b)
		}
	})
}
