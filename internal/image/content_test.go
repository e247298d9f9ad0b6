package image_test

import (
	"archive/tar"
	"bytes"
	"compress/gzip"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	imagespec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

type entries = []testkit.TarEntry

func special(name string, kind byte) testkit.TarEntry {
	return testkit.TarEntry{Header: tar.Header{Name: name, Typeflag: kind}}
}

func TestLayers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason string
		layers []entries
		want   map[string]string
	}{
		"upper layer wins": {
			reason: "layers apply bottom first",
			layers: []entries{{testkit.File("manifests/a", "old")}, {testkit.File("manifests/a", "new")}},
			want:   map[string]string{"manifests/a": "new"},
		},
		"repeated directory": {
			reason: "it says nothing new",
			layers: []entries{{testkit.Dir("manifests"), testkit.File("manifests/a", "x"), testkit.Dir("./manifests/")}},
			want:   map[string]string{"manifests/a": "x"},
		},
		"directory over file": {
			reason: "later wins",
			layers: []entries{{testkit.File("manifests/a", "x")}, {testkit.Dir("manifests/a"), testkit.File("manifests/a/b", "y")}},
			want:   map[string]string{"manifests/a/b": "y"},
		},
		"file over directory": {
			reason: "later wins",
			layers: []entries{{testkit.File("manifests/a/b", "y")}, {testkit.File("manifests/a", "x")}},
			want:   map[string]string{"manifests/a": "x"},
		},
		"file below a file": {
			reason: "the parent becomes a directory",
			layers: []entries{{testkit.File("manifests/a", "x")}, {testkit.File("manifests/a/b", "y")}},
			want:   map[string]string{"manifests/a/b": "y"},
		},
		"whiteout of a file": {
			reason: "lower layers only",
			layers: []entries{{testkit.File("manifests/a", "x"), testkit.File("manifests/b", "x")}, {testkit.File("manifests/.wh.a", "")}},
			want:   map[string]string{"manifests/b": "x"},
		},
		"whiteout of a directory": {
			reason: "with all below it",
			layers: []entries{{testkit.File("manifests/a/b/c", "x"), testkit.File("metadata/m", "x")}, {testkit.File(".wh.manifests", "")}},
			want:   map[string]string{"metadata/m": "x"},
		},
		"whiteout spares its own layer": {
			reason: "wherever in the layer it stands",
			layers: []entries{
				{testkit.File("manifests/a", "old"), testkit.File("manifests/d/old", "x")},
				{
					testkit.File("manifests/a", "new"), testkit.File("manifests/.wh.a", ""),
					testkit.File("manifests/d/new", "y"), testkit.File("manifests/.wh.d", ""),
				},
			},
			want: map[string]string{"manifests/a": "new", "manifests/d/new": "y"},
		},
		"opaque directory": {
			reason: "hides lower content, keeps that of its layer",
			layers: []entries{
				{testkit.File("manifests/a", "x"), testkit.File("manifests/d/e", "x"), testkit.File("metadata/m", "x")},
				{testkit.File("manifests/b", "y"), testkit.File("manifests/.wh..wh..opq", "")},
			},
			want: map[string]string{"manifests/b": "y", "metadata/m": "x"},
		},
		"opaque image root": {
			reason: "it lies above the selection",
			layers: []entries{{testkit.File("manifests/a", "x")}, {testkit.File(".wh..wh..opq", ""), testkit.File("metadata/m", "y")}},
			want:   map[string]string{"metadata/m": "y"},
		},
		"whiteouts of nothing": {
			reason: "of what is not there, not selected, or below a file",
			layers: []entries{
				{testkit.File("manifests/a", "x")},
				{
					testkit.File("manifests/.wh.b", ""), testkit.File("usr/.wh.bin", ""), testkit.File("manifests/a/.wh.c", ""),
					testkit.File("manifests/a/.wh..wh..opq", ""), testkit.File("manifests/.wh..wh.plnk", ""),
				},
			},
			want: map[string]string{"manifests/a": "x"},
		},
		"anything outside the selection": {
			reason: "skipped, not judged",
			layers: []entries{{
				testkit.Symlink("bin", "usr/bin"), testkit.Hardlink("usr/x", "manifests/a"), special("dev/null", tar.TypeChar),
				special("run/fifo", tar.TypeFifo), testkit.File("manifests.txt", "x"),
				testkit.File("//etc/passwd", "x"), testkit.File("etc/passwd", "y"), testkit.File("caf\xe9", "x"),
				testkit.File(strings.Repeat("long/", 300)+"x", "x"), testkit.File("manifests/a", "x"),
			}},
			want: map[string]string{"manifests/a": "x"},
		},
		"no layers": {reason: "an empty tree is the caller's business", want: map[string]string{}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.pushLayers(t, nil, tc.layers...)
			wantFiles(t, f.mustPull(t, "registry.test/pkg:v1", image.BundleContent).Files, tc.want)
		})
	}
}

func TestRefusedEntries(t *testing.T) {
	t.Parallel()
	link := func(name string) error { return &image.LinkError{Entry: name} }
	tests := map[string]struct {
		entries entries
		want    error // a LinkError to compare, or nil for any EntryError
	}{
		"symlink":                       {entries: entries{testkit.Symlink("manifests/l", "../../etc/passwd")}, want: link("manifests/l")},
		"symlink within":                {entries: entries{testkit.Symlink("manifests/l", "a")}, want: link("manifests/l")},
		"hard link":                     {entries: entries{testkit.Hardlink("manifests/l", "manifests/a")}, want: link("manifests/l")},
		"selected directory is a link":  {entries: entries{testkit.Symlink("manifests", "other")}, want: link("manifests")},
		"write through a link":          {entries: entries{testkit.Symlink("manifests/l", "/tmp"), testkit.File("manifests/l/x", "x")}, want: link("manifests/l")},
		"image root is a link":          {entries: entries{testkit.Symlink("./", "/")}, want: link(".")},
		"image root is a file":          {entries: entries{special(".", tar.TypeFifo)}},
		"character device":              {entries: entries{special("manifests/d", tar.TypeChar)}},
		"block device":                  {entries: entries{special("manifests/d", tar.TypeBlock)}},
		"fifo":                          {entries: entries{special("manifests/f", tar.TypeFifo)}},
		"dot-dot":                       {entries: entries{testkit.File("../manifests/x", "x")}},
		"dot-dot in the middle":         {entries: entries{testkit.File("manifests/../../x", "x")}},
		"dot-dot outside the selection": {entries: entries{testkit.File("usr/../x", "x")}},
		"absolute":                      {entries: entries{testkit.File("/manifests/b", "x")}},
		"file twice":                    {entries: entries{testkit.File("./manifests/a", "y")}},
		"file and directory":            {entries: entries{testkit.Dir("manifests/a")}},
		"file below a file":             {entries: entries{testkit.File("manifests/a/b", "y")}},
		"directory and file":            {entries: entries{testkit.File("manifests", "y")}},
		"not UTF-8":                     {entries: entries{testkit.File("manifests/caf\xe9", "x")}},
		"whiteout of the parent":        {entries: entries{testkit.File("manifests/.wh...", "")}},
		"whiteout of the directory":     {entries: entries{testkit.File("manifests/.wh..", "")}},
		"whiteout without a name":       {entries: entries{testkit.File("manifests/.wh.", "")}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.pushLayers(t, nil, append(entries{testkit.File("manifests/a", "x")}, tc.entries...))
			_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
			if !errors.Is(err, image.ErrContent) || strings.Contains(err.Error(), "\n") {
				t.Errorf("error = %v, want a single-line ErrContent", err)
			}
			if tc.want == nil {
				if refused := (*image.EntryError)(nil); !errors.As(err, &refused) {
					t.Errorf("error = %v, want an EntryError", err)
				}
			} else if got := (*image.LinkError)(nil); !errors.As(err, &got) || !cmp.Equal(tc.want, error(got)) {
				t.Errorf("error = %v, want %v", err, tc.want)
			}
			f.wantCached(t, 0)
		})
	}
}

func TestLinkAboveCatalog(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.pushLayers(t, catalogLabel("/opt/configs"), entries{testkit.File("opt/configs/a", "x")}, entries{testkit.Symlink("opt", "usr")})
	_, err := f.pull(t, "registry.test/pkg:v1", image.CatalogContent)
	if link := (*image.LinkError)(nil); !errors.As(err, &link) || link.Entry != "opt" {
		t.Errorf("error = %v, want a LinkError for opt", err)
	}
	f.wantCached(t, 0)
}

func TestCatalogLabel(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		labels map[string]string
		want   *image.LabelError // nil if the pull succeeds
	}{
		"missing":          {want: &image.LabelError{Label: image.CatalogLabel}},
		"empty":            {labels: catalogLabel(""), want: &image.LabelError{Label: image.CatalogLabel}},
		"no such":          {labels: catalogLabel("/nowhere"), want: &image.LabelError{Label: image.CatalogLabel, Value: "nowhere"}},
		"a file":           {labels: catalogLabel("/configs/a"), want: &image.LabelError{Label: image.CatalogLabel, Value: "configs/a"}},
		"stays inside":     {labels: catalogLabel("../../../configs"), want: nil},
		"trailing slash":   {labels: catalogLabel("configs/"), want: nil},
		"whole image":      {labels: catalogLabel("/"), want: nil},
		"replaced by file": {labels: catalogLabel("/gone/configs"), want: &image.LabelError{Label: image.CatalogLabel, Value: "gone/configs"}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.pushLayers(t, tc.labels,
				entries{testkit.File("configs/a", "x"), testkit.File("gone/configs/a", "x")}, entries{testkit.File("gone", "a file now")})
			_, err := f.pull(t, "registry.test/pkg:v1", image.CatalogContent)
			if tc.want == nil {
				if err != nil {
					t.Fatalf("error = %v", err)
				}
				return
			}
			if got := (*image.LabelError)(nil); !errors.As(err, &got) || !cmp.Equal(tc.want, got) || !errors.Is(err, image.ErrContent) {
				t.Errorf("error = %v, want %v", err, tc.want)
			}
			f.wantCached(t, 0)
		})
	}
}

func TestMissingLabelText(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	f.push(t, mapFS(bundleFiles), nil)
	_, err := f.pull(t, "registry.test/pkg:v1", image.CatalogContent)
	want := `error applying image: catalog image is missing the required label "operators.operatorframework.io.index.configs.v1"`
	if err == nil || err.Error() != want {
		t.Errorf("error = %v, want %s", err, want)
	}
}

func TestLimits(t *testing.T) {
	t.Parallel()
	many := make(entries, 0, 10_001)
	for i := range cap(many) {
		many = append(many, testkit.File(fmt.Sprintf("manifests/%05d", i), ""))
	}
	elsewhere := make(entries, 0, 101)
	for i := range cap(elsewhere) {
		elsewhere = append(elsewhere, testkit.File(fmt.Sprintf("usr/%d", i), ""))
	}
	two := []entries{{testkit.File("manifests/a", "12345")}, {testkit.File("manifests/a", "12345")}}
	tests := map[string]struct {
		reason string
		limits image.Limits
		layers []entries
		want   image.LimitError
	}{
		"content": {
			reason: "over all layers, even where a file is replaced", limits: image.Limits{ContentBytes: 9}, layers: two,
			want: image.LimitError{Bound: image.BoundContentBytes, Limit: 9, Entry: "manifests/a"},
		},
		"file": {
			reason: "refused by its header", limits: image.Limits{FileBytes: 4}, layers: two,
			want: image.LimitError{Bound: image.BoundFileBytes, Limit: 4, Entry: "manifests/a"},
		},
		"expanded": {
			reason: "headers and padding count", limits: image.Limits{ExpandedBytes: 2000}, layers: two,
			want: image.LimitError{Bound: image.BoundExpandedBytes, Limit: 2000},
		},
		"layers": {
			reason: "by the manifest", limits: image.Limits{Layers: 1}, layers: two,
			want: image.LimitError{Bound: image.BoundLayers, Limit: 1},
		},
		"default file": {
			reason: "one byte more", layers: []entries{{testkit.File("manifests/a", strings.Repeat("x", image.MaxBundleFileBytes+1))}},
			want: image.LimitError{Bound: image.BoundFileBytes, Limit: image.MaxBundleFileBytes, Entry: "manifests/a"},
		},
		"default layers": {
			reason: "one more", layers: slices.Repeat(two[:1], image.MaxLayers+1),
			want: image.LimitError{Bound: image.BoundLayers, Limit: image.MaxLayers},
		},
		"entries": {
			reason: "skipped ones count", limits: image.Limits{Entries: 100}, layers: []entries{elsewhere},
			want: image.LimitError{Bound: image.BoundEntries, Limit: 100, Entry: "usr/100"},
		},
		"default kept entries": {
			reason: "10,001 files, and their directory", layers: []entries{many},
			want: image.LimitError{Bound: image.BoundKeptEntries, Limit: image.MaxBundleEntries, Entry: "manifests/04999"},
		},
		"implicit directories": {
			reason: "every directory made counts", limits: image.Limits{KeptEntries: 3}, layers: []entries{{testkit.File("manifests/a/b/c", "")}},
			want: image.LimitError{Bound: image.BoundKeptEntries, Limit: 3, Entry: "manifests/a/b/c"},
		},
		"whiteouts": {
			reason: "they are remembered", limits: image.Limits{KeptEntries: 3},
			layers: []entries{{
				testkit.File("manifests/.wh.a", ""), testkit.File("manifests/.wh.b", ""),
				testkit.File("manifests/.wh.b", ""), testkit.File("manifests/.wh.c", ""), testkit.File("manifests/.wh.d", ""),
			}},
			want: image.LimitError{Bound: image.BoundKeptEntries, Limit: 3, Entry: "manifests/d"},
		},
		"path length": {
			reason: "in bytes", limits: image.Limits{PathBytes: 12}, layers: []entries{{testkit.File("manifests/abc", "")}},
			want: image.LimitError{Bound: image.BoundPathBytes, Limit: 12, Entry: "manifests/abc"},
		},
		"default path length": {
			reason: "far beyond what a header holds", layers: []entries{{testkit.File("manifests/"+strings.Repeat("x", 100_000), "")}},
			want: image.LimitError{Bound: image.BoundPathBytes, Limit: image.MaxPathBytes, Entry: "manifests/" + strings.Repeat("x", 100_000)},
		},
		"default depth": {
			reason: "nesting", layers: []entries{{testkit.File("manifests/"+strings.Repeat("d/", 16)+"x", "")}},
			want: image.LimitError{Bound: image.BoundPathDepth, Limit: image.MaxPathDepth, Entry: "manifests/" + strings.Repeat("d/", 16) + "x"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(config *image.Config) { config.Limits = tc.limits })
			f.pushLayers(t, nil, tc.layers...)
			_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
			wantLimit(t, err, tc.want)
			f.wantCached(t, 0)
		})
	}
}

func wantLimit(t *testing.T, err error, want image.LimitError) {
	t.Helper()
	got := (*image.LimitError)(nil)
	if !errors.As(err, &got) || !errors.Is(err, image.ErrContent) {
		t.Fatalf("error = %v, want %v", err, &want)
	}
	if diff := cmp.Diff(want, *got); diff != "" {
		t.Errorf("limit (-want +got):\n%s", diff)
	}
	if len(err.Error()) > 512 || strings.Contains(err.Error(), "\n") {
		t.Errorf("error is not one short line: %q", err)
	}
}

func TestBlobLimits(t *testing.T) {
	t.Parallel()
	archive, err := testkit.TarFS(mapFS(bundleFiles))
	if err != nil {
		t.Fatal(err)
	}
	t.Run("compressed bytes as declared", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, func(config *image.Config) { config.Limits.CompressedBytes = 100 })
		digest := f.pushBlobs(t, nil, testkit.Layer{Blob: testkit.Gzip(archive)})
		f.registry.ResetRequests()
		_, err := f.pull(t, "registry.test/pkg@"+digest, image.BundleContent)
		wantLimit(t, err, image.LimitError{
			Bound: image.BoundCompressedBytes, Limit: 100, Entry: string(imageDigest(testkit.Gzip(archive))),
		})
		if count := f.registry.Count("/blobs/"); count != 0 {
			t.Errorf("%d blobs were read", count)
		}
		f.wantCached(t, 0)
	})
	t.Run("manifest", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, func(config *image.Config) { config.Limits.ManifestBytes = 100 })
		f.push(t, mapFS(bundleFiles), nil)
		_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
		wantLimit(t, err, image.LimitError{Bound: image.BoundManifestBytes, Limit: 100})
	})
	t.Run("manifest beyond what the transport reads", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, nil)
		f.registry.Use(testkit.ReplaceBody("/manifests/", imagespec.MediaTypeImageManifest, bytes.Repeat([]byte(" "), 5<<20)))
		if _, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent); err == nil {
			t.Error("a manifest of 5 MiB was read")
		}
	})
	t.Run("configuration", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, nil)
		f.push(t, mapFS(bundleFiles), map[string]string{"x": strings.Repeat("x", image.MaxManifestBytes)})
		_, err := f.pull(t, "registry.test/pkg:v1", image.CatalogContent)
		got := (*image.LimitError)(nil)
		if !errors.As(err, &got) || got.Bound != image.BoundManifestBytes {
			t.Errorf("error = %v, want a LimitError", err)
		}
		f.wantCached(t, 0)
	})
}

// TestGzipBomb sends 2 MB that expand to 2 GB, where it would be kept and
// where it is skipped.
func TestGzipBomb(t *testing.T) {
	t.Parallel()
	t.Run("kept", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, nil)
		f.pushBlobs(t, catalogLabel("/configs"), testkit.Layer{Blob: bomb(t, "configs/zeros")})
		_, err := f.pull(t, "registry.test/pkg:v1", image.CatalogContent)
		wantLimit(t, err, image.LimitError{Bound: image.BoundFileBytes, Limit: image.MaxCatalogFileBytes, Entry: "configs/zeros"})
		f.wantCached(t, 0)
	})
	t.Run("skipped", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, func(config *image.Config) { config.Limits.ExpandedBytes = 1 << 28 })
		f.pushBlobs(t, nil, testkit.Layer{Blob: bomb(t, "usr/zeros")})
		_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
		wantLimit(t, err, image.LimitError{Bound: image.BoundExpandedBytes, Limit: 1 << 28})
		f.wantCached(t, 0)
	})
	t.Run("after the end of the archive", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, func(config *image.Config) { config.Limits.ExpandedBytes = 1 << 28 })
		end := testkit.Gzip(make([]byte, 1024))
		f.pushBlobs(t, nil, testkit.Layer{Blob: append(end, bomb(t, "usr/zeros")...)})
		_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
		wantLimit(t, err, image.LimitError{Bound: image.BoundExpandedBytes, Limit: 1 << 28})
		f.wantCached(t, 0)
	})
}

// bomb returns an archive with a file of 2 GiB of zeros, compressed. Gzip
// members may be strung together, so one of a mebibyte is enough.
func bomb(t *testing.T, name string) []byte {
	t.Helper()
	const size = 2 << 30
	var header bytes.Buffer
	if err := tar.NewWriter(&header).WriteHeader(&tar.Header{Name: name, Typeflag: tar.TypeReg, Size: size}); err != nil {
		t.Fatal(err)
	}
	var member bytes.Buffer
	compressed, err := gzip.NewWriterLevel(&member, gzip.BestCompression)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.CopyN(compressed, zeros{}, 1<<20); err != nil {
		t.Fatal(err)
	}
	if err := compressed.Close(); err != nil {
		t.Fatal(err)
	}
	blob := append(testkit.Gzip(header.Bytes()), bytes.Repeat(member.Bytes(), size>>20)...)
	return append(blob, testkit.Gzip(make([]byte, 1024))...)
}

type zeros struct{}

func (zeros) Read(p []byte) (int, error) {
	clear(p)
	return len(p), nil
}

func TestMalformedImages(t *testing.T) {
	t.Parallel()
	archive, err := testkit.TarFS(mapFS(bundleFiles))
	if err != nil {
		t.Fatal(err)
	}
	compressed := testkit.Gzip(archive)
	tests := map[string]testkit.Layer{
		"not a tar archive":   {Blob: testkit.Gzip([]byte(strings.Repeat("x", 2000)))},
		"cut tar archive":     {Blob: testkit.Gzip(archive[:700])},
		"cut gzip":            {Blob: compressed[:len(compressed)-10]},
		"garbage after gzip":  {Blob: append(bytes.Clone(compressed), "garbage"...)},
		"broken zstd":         {Blob: []byte{0x28, 0xb5, 0x2f, 0xfd, 0xff, 0xff, 0xff, 0xff}},
		"zstd window of 2 GB": {Blob: []byte{0x28, 0xb5, 0x2f, 0xfd, 0x00, 0xa8, 0x01, 0x00, 0x00}},
		"not a layer":         {Blob: compressed, MediaType: "application/vnd.cncf.helm.chart.content.v1.tar+gzip"},
		"encrypted":           {Blob: compressed, MediaType: imagespec.MediaTypeImageLayerGzip + "+encrypted"},
	}
	for name, layer := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.pushBlobs(t, nil, layer)
			_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
			if format := (*image.FormatError)(nil); !errors.As(err, &format) || !errors.Is(err, image.ErrContent) {
				t.Errorf("error = %v, want a FormatError", err)
			}
			f.wantCached(t, 0)
		})
	}
}

// TestSparseBomb sends an old GNU sparse header whose map never seems to end,
// at a place that is skipped.
func TestSparseBomb(t *testing.T) {
	t.Parallel()
	header := make([]byte, 512)
	copy(header, "usr/sparse")
	copy(header[100:], "0000644\x000000000\x000000000\x0000000000000\x0000000000000\x00        S")
	copy(header[257:], "ustar  \x00")
	header[482] = 1 // the map goes on in another block
	copy(header[483:], "00000000000\x00")
	sum := 0
	for _, b := range header {
		sum += int(b)
	}
	copy(header[148:], fmt.Sprintf("%06o\x00 ", sum))
	more := make([]byte, 512)
	more[504] = 1
	archive := slices.Concat(header, bytes.Repeat(more, 1<<13))
	f := newFixture(t, nil)
	f.pushBlobs(t, nil, testkit.Layer{Blob: testkit.Gzip(archive)})
	_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
	if format := (*image.FormatError)(nil); !errors.As(err, &format) {
		t.Errorf("error = %v, want a FormatError", err)
	}
	f.wantCached(t, 0)
}

// TestForeignURLs: a descriptor may name other places for its blob. Going there
// would make this process ask whatever the image says.
func TestForeignURLs(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	archive, err := testkit.TarFS(mapFS(bundleFiles))
	if err != nil {
		t.Fatal(err)
	}
	manifest := imagespec.Manifest{MediaType: imagespec.MediaTypeImageManifest}
	manifest.SchemaVersion = 2
	if manifest.Config, err = f.registry.PushBlob(t.Context(), "pkg", imagespec.MediaTypeImageConfig, []byte("{}")); err != nil {
		t.Fatal(err)
	}
	layer, err := f.registry.PushBlob(t.Context(), "pkg", imagespec.MediaTypeImageLayerGzip, testkit.Gzip(archive))
	if err != nil {
		t.Fatal(err)
	}
	layer.URLs = []string{"http://" + f.registry.Host() + "/v2/elsewhere"}
	manifest.Layers = []imagespec.Descriptor{layer}
	if _, err := f.registry.PushManifest(t.Context(), "pkg:v1", imagespec.MediaTypeImageManifest, manifest); err != nil {
		t.Fatal(err)
	}
	wantFiles(t, f.mustPull(t, "registry.test/pkg:v1", image.BundleContent).Files, bundleFiles)
	if count := f.registry.Count("elsewhere"); count != 0 {
		t.Errorf("%d requests to a place that the image names", count)
	}
}

func TestMalformedManifests(t *testing.T) {
	t.Parallel()
	const sized = `{"mediaType":"%s","digest":"sha256:` + zeroHex + `","size":%d}`
	desc := func(mediaType string, size int) string { return fmt.Sprintf(sized, mediaType, size) }
	config, layer := desc(imagespec.MediaTypeImageConfig, 2), desc(imagespec.MediaTypeImageLayerGzip, -1)
	tests := map[string]struct{ mediaType, manifest string }{
		"not JSON":           {imagespec.MediaTypeImageManifest, `{`},
		"negative size":      {imagespec.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + config + `,"layers":[` + layer + `]}`},
		"no digest":          {imagespec.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + config + `,"layers":[{"mediaType":"` + imagespec.MediaTypeImageLayerGzip + `"}]}`},
		"image and index":    {imagespec.MediaTypeImageManifest, `{"schemaVersion":2,"config":` + config + `,"layers":[],"manifests":[]}`},
		"schema 1":           {"application/vnd.docker.distribution.manifest.v1+json", `{"schemaVersion":1,"name":"x","tag":"y","fsLayers":[],"history":[]}`},
		"unknown":            {"text/html", `<html>Log in</html>`},
		"index is not JSON":  {imagespec.MediaTypeImageIndex, `{`},
		"empty index":        {imagespec.MediaTypeImageIndex, `{"schemaVersion":2,"manifests":[]}`},
		"index bad instance": {imagespec.MediaTypeImageIndex, `{"schemaVersion":2,"manifests":[{"digest":"../../x","size":1}]}`},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			f.registry.Use(testkit.ReplaceBody("/manifests/", tc.mediaType, []byte(tc.manifest)))
			_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
			if format := (*image.FormatError)(nil); !errors.As(err, &format) {
				t.Errorf("error = %v, want a FormatError", err)
			}
			f.wantCached(t, 0)
		})
	}
}
