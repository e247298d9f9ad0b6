package image_test

import (
	"archive/tar"
	"bytes"
	"errors"
	"fmt"
	"net/http"
	"runtime"
	"strings"
	"testing"

	"github.com/klauspost/compress/zstd"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// maxHostileBytes is what any hostile image may make a pull allocate, all
// garbage included. The decoders take some 20 MiB.
const maxHostileBytes = 256 << 20

// hostile is an image and how it has to fail.
type hostile struct {
	reason string
	layers func(t *testing.T) []testkit.Layer
	fault  func(http.Handler) http.Handler
	ref    func(t *testing.T, f *fixture, digest string) string // by default that of the layers
	want   func(error) bool
}

// TestHostileImages does what happens to every bundle, pull and parse, to
// images that are made to do harm. Each ends in an error of the promised type,
// without much memory, and leaves nothing on disk; what is refused only once it
// is parsed leaves the files that were asked for.
//
//nolint:paralleltest // it measures what is allocated
func TestHostileImages(t *testing.T) {
	testkit.WithoutRace(t)
	for name, tc := range hostileImages() {
		t.Run(name, func(t *testing.T) {
			f := newFixture(t, nil)
			var layers []testkit.Layer
			if tc.layers != nil {
				layers = tc.layers(t)
			}
			digest := f.pushBlobs(t, nil, layers...)
			ref := "registry.test/pkg@" + digest
			if tc.ref != nil {
				ref = tc.ref(t, f, digest)
			}
			if tc.fault != nil {
				f.registry.Use(tc.fault)
			}
			var before, after runtime.MemStats
			runtime.ReadMemStats(&before)
			cached, err := pullAndParse(t, f, ref)
			runtime.ReadMemStats(&after)
			if err == nil || !tc.want(err) {
				t.Errorf("error = %v: %s", err, tc.reason)
			}
			if taken := after.TotalAlloc - before.TotalAlloc; taken > maxHostileBytes {
				t.Errorf("%d MiB were allocated: %s", taken>>20, tc.reason)
			}
			f.wantCached(t, cached)
		})
	}
}

// pullAndParse gives how many images are rightly in the cache afterwards.
func pullAndParse(t *testing.T, f *fixture, ref string) (cached int, err error) {
	t.Helper()
	img, err := f.puller.Pull(t.Context(), image.Request{Ref: ref, Select: image.BundleContent})
	if err != nil {
		return 0, err
	}
	defer img.Close()
	_, err = bundle.Parse(img.Files)
	return 1, err
}

func hostileImages() map[string]hostile {
	return map[string]hostile{
		"link out of the tree":        {reason: "it would be read as a file of the controller", layers: files(testkit.Symlink("manifests/l", "/etc/passwd")), want: isType[*image.LinkError]},
		"link to a parent":            {reason: "the same, in other words", layers: files(testkit.Symlink("manifests/l", "../../../../etc/passwd")), want: isType[*image.LinkError]},
		"hard link out of the tree":   {reason: "the same, and for good", layers: files(testkit.Hardlink("manifests/l", "/etc/passwd")), want: isType[*image.LinkError]},
		"file below a link":           {reason: "it would be written elsewhere", layers: files(testkit.Symlink("manifests", "/tmp"), testkit.File("manifests/x", "x")), want: isType[*image.LinkError]},
		"link in a lower layer":       {reason: "layers are one tree", layers: layersOf(entries{testkit.Symlink("manifests", "/tmp")}, entries{testkit.File("manifests/x", "x")}), want: isType[*image.LinkError]},
		"absolute name":               {reason: "readers differ in where that is", layers: files(testkit.File("/manifests/x", "x")), want: isType[*image.EntryError]},
		"name of a parent":            {reason: "it lies outside", layers: files(testkit.File("manifests/../../x", "x")), want: isType[*image.EntryError]},
		"character device":            {reason: "reading it may never end", layers: files(special("manifests/zero", tar.TypeChar)), want: isType[*image.EntryError]},
		"block device":                {reason: "it is a disk", layers: files(special("manifests/sda", tar.TypeBlock)), want: isType[*image.EntryError]},
		"fifo":                        {reason: "opening it never ends", layers: files(special("manifests/fifo", tar.TypeFifo)), want: isType[*image.EntryError]},
		"file twice":                  {reason: "readers differ in which one counts", layers: files(testkit.File("manifests/x", "x"), testkit.File("./manifests//x", "y")), want: isType[*image.EntryError]},
		"whiteout of the parent":      {reason: "it would delete what is outside", layers: files(testkit.File("manifests/.wh...", "")), want: isType[*image.EntryError]},
		"whiteout of everything else": {reason: "it deletes nothing outside, and a bundle without files is none", layers: layersOf(entries{testkit.File("manifests/x", "x")}, entries{testkit.File(".wh..wh..opq", "")}), want: isType[*bundle.InvalidError]},
		"many whiteouts":              {reason: "each is remembered", layers: numbered("manifests/.wh.%d", 10_000), want: exceeds(image.BoundKeptEntries)},
		"many files":                  {reason: "each is an inode", layers: numbered("manifests/%d", 10_000), want: exceeds(image.BoundKeptEntries)},
		"deep directories":            {reason: "whoever walks them recurses", layers: files(testkit.File("manifests/"+strings.Repeat("d/", 2000)+"x", "x")), want: exceeds(image.BoundPathBytes)},
		"somewhat deep directories":   {reason: "the same", layers: files(testkit.File("manifests/"+strings.Repeat("d/", 20)+"x", "x")), want: exceeds(image.BoundPathDepth)},
		"gzip bomb, kept":             {reason: "2 MB that are 2 GB", layers: gzipBomb("manifests/zeros"), want: exceeds(image.BoundFileBytes)},
		"gzip bomb, skipped":          {reason: "it costs time where it costs no space", layers: gzipBomb("zeros"), want: exceeds(image.BoundExpandedBytes)},
		"zstd bomb, kept":             {reason: "2 MB that are 2 GB, or much more", layers: zstdBomb("manifests/zeros"), want: exceeds(image.BoundFileBytes)},
		"zstd bomb, skipped":          {reason: "it costs time where it costs no space", layers: zstdBomb("zeros"), want: exceeds(image.BoundExpandedBytes)},
		"200 MB of YAML in a file":    {reason: "more than a record can hold", layers: yamlOf(1, 200<<20), want: exceeds(image.BoundFileBytes)},
		"200 MB of YAML in files":     {reason: "the same", layers: yamlOf(20, 10<<20), want: exceeds(image.BoundContentBytes)},
		"50 MB of YAML":               {reason: "it fits on disk and not in memory", layers: yamlOf(5, 10<<20), want: isType[*bundle.InvalidError]},
		"YAML alias bomb":             {reason: "a thousand bytes that are a billion values", layers: files(testkit.File("manifests/x.yaml", aliasBomb())), want: isType[*bundle.InvalidError]},
		"YAML nested deeply":          {reason: "parsers recurse", layers: files(testkit.File("manifests/x.yaml", strings.Repeat("[", 1<<20))), want: isType[*bundle.InvalidError]},
		"no platform of ours":         {reason: "there is nothing to take", ref: foreignIndex, want: isType[*image.FormatError]},
		"other bytes":                 {reason: "the registry lies", layers: files(testkit.File("manifests/x", "x")), fault: testkit.ReplaceBody("/manifests/", imagespec.MediaTypeImageManifest, []byte(`{"schemaVersion":2}`)), want: isType[*image.DigestError]},
		"more bytes":                  {reason: "the registry never stops", layers: files(testkit.File("manifests/x", "x")), fault: testkit.ReplaceBody("/blobs/", "", make([]byte, 8<<20)), want: isType[*image.DigestError]},
		"fewer bytes":                 {reason: "the transfer broke off", layers: files(testkit.File("manifests/x", strings.Repeat("random", 1000))), fault: testkit.CutBody("/blobs/", 50), want: isType[*image.RegistryError]},
		"huge manifest":               {reason: "it is held in memory", ref: manifestOf(2 << 20), want: exceeds(image.BoundManifestBytes)},
		"more than huge manifest":     {reason: "it is not even read", ref: manifestOf(64 << 20), want: isType[*image.RegistryError]},
	}
}

func isType[E error](err error) bool {
	_, ok := errors.AsType[E](err)
	return ok
}

func exceeds(bound image.Bound) func(error) bool {
	return func(err error) bool {
		limit, ok := errors.AsType[*image.LimitError](err)
		return ok && limit.Bound == bound
	}
}

func files(all ...testkit.TarEntry) func(*testing.T) []testkit.Layer { return layersOf(all) }

func layersOf(all ...entries) func(*testing.T) []testkit.Layer {
	return func(t *testing.T) []testkit.Layer {
		t.Helper()
		var layers []testkit.Layer
		for _, some := range all {
			archive, err := testkit.Tar(some...)
			if err != nil {
				t.Fatal(err)
			}
			layers = append(layers, testkit.Layer{Blob: testkit.Gzip(archive)})
		}
		return layers
	}
}

func numbered(format string, count int) func(*testing.T) []testkit.Layer {
	return func(t *testing.T) []testkit.Layer {
		t.Helper()
		var all entries
		for i := range count {
			all = append(all, testkit.File(fmt.Sprintf(format, i), ""))
		}
		return files(all...)(t)
	}
}

func yamlOf(count, size int) func(*testing.T) []testkit.Layer {
	return func(t *testing.T) []testkit.Layer {
		t.Helper()
		const line = "a: [1, 2, 3]\n"
		text := strings.Repeat(line, size/len(line))
		var all entries
		for i := range count {
			all = append(all, testkit.File(fmt.Sprintf("manifests/%d.yaml", i), text))
		}
		return files(all...)(t)
	}
}

func gzipBomb(name string) func(*testing.T) []testkit.Layer {
	return func(t *testing.T) []testkit.Layer {
		t.Helper()
		return []testkit.Layer{{Blob: bomb(t, name)}}
	}
}

// zstdBomb strings frames of a mebibyte of zeros together.
func zstdBomb(name string) func(*testing.T) []testkit.Layer {
	return func(t *testing.T) []testkit.Layer {
		t.Helper()
		const size = 2 << 30
		var header bytes.Buffer
		if err := tar.NewWriter(&header).WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: size}); err != nil {
			t.Fatal(err)
		}
		encoder, err := zstd.NewWriter(nil)
		if err != nil {
			t.Fatal(err)
		}
		frame := encoder.EncodeAll(make([]byte, 1<<20), nil)
		blob := append(encoder.EncodeAll(header.Bytes(), nil), bytes.Repeat(frame, size>>20)...)
		return []testkit.Layer{{Blob: blob, MediaType: imagespec.MediaTypeImageLayerZstd}}
	}
}

// aliasBomb doubles a list thirty times.
func aliasBomb() string {
	text := "a0: &a0 [x, x]\n"
	for i := range 30 {
		text += fmt.Sprintf("a%d: &a%d [*a%d, *a%d]\n", i+1, i+1, i, i)
	}
	return text
}

func foreignIndex(t *testing.T, f *fixture, digest string) string {
	t.Helper()
	index, err := f.registry.PushIndex(t.Context(), "pkg:index", testkit.IndexEntry{Platform: "linux/m68k", Digest: digest})
	if err != nil {
		t.Fatal(err)
	}
	return "registry.test/pkg@" + index
}

func manifestOf(size int) func(*testing.T, *fixture, string) string {
	return func(t *testing.T, f *fixture, _ string) string {
		t.Helper()
		manifest := []byte(`{"schemaVersion":2,"annotations":{"x":"` + strings.Repeat("x", size) + `"}}`)
		digest, err := f.registry.PushManifest(t.Context(), "pkg:huge", imagespec.MediaTypeImageManifest, manifest)
		if err != nil {
			t.Fatal(err)
		}
		return "registry.test/pkg@" + digest
	}
}
