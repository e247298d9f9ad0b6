package image_test

import (
	"errors"
	"strings"
	"testing"

	imagespec "github.com/opencontainers/image-spec/specs-go/v1"

	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

var chartFiles = map[string]string{
	"Chart.yaml":            "name: web\n",
	"templates/a.yaml":      "kind: A\n",
	"templates/.wh.b.yaml":  "kind: B\n",
	"charts/db/Chart.yaml":  "name: db\n",
	"manifests/unused.yaml": "kind: C\n",
}

// TestCharts has the whole of a chart below one directory, whatever its own is called.
// The provenance file beside it is ignored, and noted: vector C9.
func TestCharts(t *testing.T) {
	t.Parallel()
	want := map[string]string{}
	for name, content := range chartFiles {
		want[image.ChartDir+"/"+name] = content
	}
	for _, provenance := range []bool{false, true} {
		f := newFixture(t, nil)
		var layers []testkit.Layer
		if provenance {
			layers = append(layers, testkit.Layer{Blob: []byte("signed"), MediaType: testkit.ChartProvenance})
		}
		if _, err := f.registry.PushChart(t.Context(), "pkg:v1", "web", mapFS(chartFiles), layers...); err != nil {
			t.Fatal(err)
		}
		pulled := f.mustPull(t, "registry.test/pkg:v1", image.BundleContent)
		wantFiles(t, pulled.Files, want)
		if pulled.Root != "." || pulled.Provenance != provenance {
			t.Errorf("root %q, provenance %v; want . and %v", pulled.Root, pulled.Provenance, provenance)
		}
		if count := f.registry.Count("/blobs/"); count != 1 {
			t.Errorf("%d blobs were read, want that of the archive", count)
		}
	}
}

// TestRefusedCharts has what is not the archive of one chart. A layer of another type is
// named: vector C10.
func TestRefusedCharts(t *testing.T) {
	t.Parallel()
	archive := func(entries ...testkit.TarEntry) testkit.Layer {
		content, err := testkit.Tar(entries...)
		if err != nil {
			t.Fatal(err)
		}
		return testkit.Layer{Blob: testkit.Gzip(content), MediaType: testkit.ChartContent}
	}
	chart := archive(testkit.File("web/Chart.yaml", "name: web"))
	tests := map[string]struct {
		layers []testkit.Layer
		want   string
	}{
		"a layer of another type": {
			layers: []testkit.Layer{chart, {Blob: []byte("x"), MediaType: "application/vnd.example.sbom"}},
			want:   `"application/vnd.example.sbom"`,
		},
		"a layer of a container": {
			layers: []testkit.Layer{{Blob: chart.Blob, MediaType: imagespec.MediaTypeImageLayerGzip}},
			want:   imagespec.MediaTypeImageLayerGzip,
		},
		"two charts":            {layers: []testkit.Layer{chart, chart}, want: "2 layers instead of one"},
		"no chart":              {want: "0 layers instead of one"},
		"a file beside":         {layers: []testkit.Layer{archive(testkit.File("web/Chart.yaml", "x"), testkit.File("other", "x"))}, want: `"other": not in the folder`},
		"a second folder":       {layers: []testkit.Layer{archive(testkit.File("web/Chart.yaml", "x"), testkit.File("etc/passwd", "x"))}, want: `the chart, which is "web"`},
		"a path that leads out": {layers: []testkit.Layer{archive(testkit.File("web/../../etc/passwd", "x"))}, want: `".."`},
		"an absolute path":      {layers: []testkit.Layer{archive(testkit.File("/web/Chart.yaml", "x"))}, want: "absolute"},
		"a backslash":           {layers: []testkit.Layer{archive(testkit.File(`web\..\Chart.yaml`, "x"))}, want: "backslash"},
		"a link":                {layers: []testkit.Layer{archive(testkit.Symlink("web/values.yaml", "/etc/passwd"))}, want: "link"},
		"a file twice":          {layers: []testkit.Layer{archive(testkit.File("web/a", "x"), testkit.File("web/a", "y"))}, want: "twice"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, nil)
			if _, err := f.registry.PushChartLayers(t.Context(), "pkg:v1", test.layers...); err != nil {
				t.Fatal(err)
			}
			_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
			if err == nil || !errors.Is(err, image.ErrContent) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error = %v, want one of the content with %s", err, test.want)
			}
			f.wantCached(t, 0)
		})
	}
}

// TestChartIsNoCatalog has an administrator who takes one for the other.
func TestChartIsNoCatalog(t *testing.T) {
	t.Parallel()
	f := newFixture(t, nil)
	if _, err := f.registry.PushChart(t.Context(), "pkg:v1", "web", mapFS(chartFiles)); err != nil {
		t.Fatal(err)
	}
	if _, err := f.pull(t, "registry.test/pkg:v1", image.CatalogContent); !errors.Is(err, image.ErrContent) {
		t.Errorf("error = %v, want one of the content", err)
	}
}

// TestLimitsOfCharts are those of all bundles.
func TestLimitsOfCharts(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		edit func(*image.Limits)
		want image.LimitError
	}{
		"files": {
			edit: func(limits *image.Limits) { limits.KeptEntries = 2 },
			want: image.LimitError{Bound: image.BoundKeptEntries, Limit: 2, Entry: "chart/c"},
		},
		"a file": {
			edit: func(limits *image.Limits) { limits.FileBytes = 3 },
			want: image.LimitError{Bound: image.BoundFileBytes, Limit: 3, Entry: "chart/Chart.yaml"},
		},
		"all bytes": {
			edit: func(limits *image.Limits) { limits.ContentBytes = 10 },
			want: image.LimitError{Bound: image.BoundContentBytes, Limit: 10, Entry: "chart/c"},
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, func(config *image.Config) { test.edit(&config.Limits) })
			files := mapFS(map[string]string{"Chart.yaml": "name: web", "c": "12"})
			if _, err := f.registry.PushChart(t.Context(), "pkg:v1", "web", files); err != nil {
				t.Fatal(err)
			}
			_, err := f.pull(t, "registry.test/pkg:v1", image.BundleContent)
			wantLimit(t, err, test.want)
			f.wantCached(t, 0)
		})
	}
}
