package bundlepush_test

import (
	"bytes"
	"encoding/json"
	"io"
	"io/fs"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/rogpeppe/go-internal/txtar"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	helmregistry "helm.sh/helm/v3/pkg/registry"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/bundlepush"
	"github.com/clusterextensions/operator-controller/internal/catalogrender"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
)

func web() fstest.MapFS {
	return fstest.MapFS{
		"chart/Chart.yaml":           {Data: []byte("apiVersion: v2\nname: web\nversion: 1.2.0\ndescription: serves\n")},
		"chart/values.yaml":          {Data: []byte("a: b\n")},
		"chart/templates/a.yaml":     {Data: []byte("kind: A\n")},
		"chart/templates/.wh.b.yaml": {Data: []byte("kind: B\n")},
	}
}

// TestPushChart has a chart in a registry as "helm push" leaves it there, which Helm loads, and
// who pulls bundles finds as it was.
func TestPushChart(t *testing.T) {
	t.Parallel()
	registry, images := imagetest.Start(t)
	target := bundlepush.Target{Repository: registry.Host() + "/team/web"}
	ref, err := target.Push(t.Context(), bundlepush.Content{Files: web()})
	if err != nil {
		t.Fatal(err)
	}
	if again, err := target.Push(t.Context(), bundlepush.Content{Files: web()}); err != nil || again != ref {
		t.Errorf("the same files are %s, and then %s: %v", ref, again, err)
	}
	parsed, err := name.ParseReference(ref)
	if err != nil {
		t.Fatal(err)
	}
	pushed, err := remote.Image(parsed)
	if err != nil {
		t.Fatal(err)
	}
	manifest, err := pushed.Manifest()
	if err != nil || len(manifest.Layers) != 1 {
		t.Fatalf("manifest %+v: %v", manifest, err)
	}
	config, layer := string(manifest.Config.MediaType), string(manifest.Layers[0].MediaType)
	if config != "application/vnd.cncf.helm.config.v1+json" || layer != "application/vnd.cncf.helm.chart.content.v1.tar+gzip" {
		t.Errorf("media types %s and %s", config, layer)
	}
	text, err := pushed.RawConfigFile()
	said := chart.Metadata{}
	if err != nil || json.Unmarshal(text, &said) != nil || said.Name != "web" || said.Description != "serves" {
		t.Errorf("configuration %s: %v", text, err)
	}
	loaded := load(t, ref)
	names := make([]string, 0, len(loaded.Raw))
	for _, file := range loaded.Raw {
		names = append(names, "chart/"+file.Name)
	}
	slices.Sort(names)
	if want := []string{"chart/Chart.yaml", "chart/templates/.wh.b.yaml", "chart/templates/a.yaml", "chart/values.yaml"}; !slices.Equal(names, want) || loaded.Metadata.Version != "1.2.0" {
		t.Errorf("Helm finds version %s and %q", loaded.Metadata.Version, names)
	}

	found, err := image.Once(t.Context(), images, image.Request{Ref: ref, Select: image.BundleContent})
	if err != nil {
		t.Fatal(err)
	}
	defer found.Close()
	for name, file := range web() {
		if content, err := fs.ReadFile(found.Files, name); err != nil || !bytes.Equal(content, file.Data) {
			t.Errorf("%s is %q: %v", name, content, err)
		}
	}
	content, err := bundle.Parse(found.Files)
	if err != nil || content.Format != bundle.HelmChart {
		t.Errorf("format %s: %v", content.Format, err)
	}
}

// load has Helm read what is in the registry.
func load(t *testing.T, ref string) *chart.Chart {
	t.Helper()
	loaded, err := loader.LoadArchive(bytes.NewReader(imagetest.Layers(t, ref)[testkit.ChartContent]))
	if err != nil {
		t.Fatal(err)
	}
	return loaded
}

// TestHelmPulls: Helm pulls the archive and the provenance file unchanged.
func TestHelmPulls(t *testing.T) {
	t.Parallel()
	registry, _ := imagetest.Start(t)
	archive := webArchive(t)
	target := bundlepush.Target{Repository: registry.Host() + "/team/web", Tag: "1.2.0"}
	if _, err := target.Push(t.Context(), bundlepush.Content{Files: web(), Archive: archive, Provenance: []byte("signed")}); err != nil {
		t.Fatal(err)
	}
	client, err := helmregistry.NewClient(helmregistry.ClientOptPlainHTTP(), helmregistry.ClientOptCredentialsFile(filepath.Join(t.TempDir(), "config.json")), helmregistry.ClientOptWriter(io.Discard))
	if err != nil {
		t.Fatal(err)
	}
	pulled, err := client.Pull(target.Repository+":"+target.Tag, helmregistry.PullOptWithChart(true), helmregistry.PullOptWithProv(true))
	if err != nil {
		t.Fatal(err)
	}
	if !bytes.Equal(pulled.Chart.Data, archive) || string(pulled.Prov.Data) != "signed" || pulled.Chart.Meta.Name != "web" {
		t.Errorf("Helm pulls %+v", pulled.Chart.Meta)
	}
}

// TestPushNoChart has nothing pushed that cannot be read.
func TestPushNoChart(t *testing.T) {
	t.Parallel()
	registry, _ := imagetest.Start(t)
	files := web()
	files["chart/Chart.yaml"] = &fstest.MapFile{Data: []byte("apiVersion: v2\nversion: 1.0.0\n")}
	_, err := bundlepush.Target{Repository: registry.Host() + "/team/web"}.Push(t.Context(), bundlepush.Content{Files: files})
	if err == nil || !strings.Contains(err.Error(), "chart/Chart.yaml: name: the chart has no name") || registry.Count("/") > 0 {
		t.Errorf("%d requests, error %v", registry.Count("/"), err)
	}
}

// TestPushShapes has charts of ten shapes come back as they were, and as entries of a catalog.
func TestPushShapes(t *testing.T) {
	t.Parallel()
	registry, images := imagetest.Start(t)
	names, err := filepath.Glob("../helmchart/testdata/*.txtar")
	if err != nil || len(names) < 10 {
		t.Fatalf("%d charts: %v", len(names), err)
	}
	for _, name := range names {
		archive, err := txtar.ParseFile(name)
		if err != nil {
			t.Fatal(err)
		}
		files := fstest.MapFS{}
		for _, file := range archive.Files {
			if strings.HasPrefix(file.Name, "chart/") {
				files[file.Name] = &fstest.MapFile{Data: file.Data}
			}
		}
		ref, err := bundlepush.Target{Repository: registry.Host() + "/shapes"}.Push(t.Context(), bundlepush.Content{Files: files})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		load(t, ref)
		found, err := image.Once(t.Context(), images, image.Request{Ref: ref, Select: image.BundleContent})
		if err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		for path, file := range files {
			if content, err := fs.ReadFile(found.Files, path); err != nil || !bytes.Equal(content, file.Data) {
				t.Errorf("%s: %s is %q: %v", name, path, content, err)
			}
		}
		found.Close()
		rendered, err := catalogrender.Renderer{Images: images}.All(t.Context(), []string{ref})
		if err != nil || len(rendered.Bundles) != 1 || rendered.Bundles[0].Image != ref {
			t.Errorf("%s: entry %+v: %v", name, rendered, err)
		}
	}
}
