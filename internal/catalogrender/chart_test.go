package catalogrender_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"testing/fstest"
	"text/template"

	"github.com/google/go-cmp/cmp"
	"github.com/operator-framework/operator-registry/alpha/action/migrations"
	"github.com/operator-framework/operator-registry/alpha/declcfg"

	"github.com/clusterextensions/operator-controller/internal/catalogrender"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
)

const chartYAML = "apiVersion: v2\nname: web\nversion: 1.2.0\n"

// things is a definition with a version that is served, and one that is not.
const things = `apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: things.web.test}
spec:
  group: web.test
  scope: Namespaced
  names: {plural: things, kind: Thing}
  versions:
  - {name: v1alpha1, served: false, storage: false, schema: {openAPIV3Schema: {type: object}}}
  - {name: v1, served: true, storage: true, schema: {openAPIV3Schema: {type: object}}}
`

// chart has what is installed whatever the values are.
func chart(files map[string]string) fstest.MapFS {
	made := fstest.MapFS{"Chart.yaml": {Data: []byte(chartYAML)}, "templates/a.yaml": {Data: []byte("{{ fail .Values.none }}")}}
	for name, text := range files {
		made[name] = &fstest.MapFile{Data: []byte(text)}
	}
	return made
}

// text is the catalog as it is printed.
func text(t *testing.T, rendered *declcfg.DeclarativeConfig) string {
	t.Helper()
	var out bytes.Buffer
	if err := declcfg.WriteYAML(*rendered, &out); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

// TestCharts has the entries of charts, from a registry.
func TestCharts(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]string
		as    string // the package
		want  string // IMAGE stands for the image
		notes []string
	}{
		"the least": {
			want: `---
image: IMAGE
name: web.v1.2.0
package: web
properties:
- type: olm.package
  value:
    packageName: web
    version: 1.2.0
- type: olm.csv.metadata
  value:
    apiServiceDefinitions: {}
    crdDescriptions: {}
    provider: {}
relatedImages:
- image: IMAGE
  name: ""
schema: olm.bundle
`,
		},
		"all that there is a place for": {
			files: map[string]string{
				"Chart.yaml": chartYAML + `kubeVersion: ">=1.25.0-0 <1.40.0"
appVersion: "7.1"
description: It serves.
keywords: [www, http]
home: https://web.test
sources: [https://git.test/web]
icon: https://web.test/icon.svg
deprecated: true
maintainers: [{name: A. Person, email: a@web.test, url: https://a.test}]
`,
				"crds/things.yaml":                 things + "---\n",
				"crds/more/list.json":              `{"kind":"List","apiVersion":"v1","items":[{"kind":"ConfigMap","apiVersion":"v1","metadata":{"name":"a"}}]}`,
				"crds/README.md":                   "{{",
				"charts/db/Chart.yaml":             "apiVersion: v2\nname: db\nversion: 1.0.0\n",
				"charts/db/crds/not-for-sure.yaml": strings.ReplaceAll(things, "web.test", "db.test"),
			},
			as: "web-server",
			want: `---
image: IMAGE
name: web-server.v1.2.0
package: web-server
properties:
- type: olm.package
  value:
    packageName: web-server
    version: 1.2.0
- type: clusterextensions.dev/kubeVersion
  value: '>=1.25.0-0 <1.40.0'
- type: olm.gvk
  value:
    group: web.test
    kind: Thing
    version: v1
- type: olm.csv.metadata
  value:
    annotations:
      description: It serves.
    apiServiceDefinitions: {}
    crdDescriptions:
      owned:
      - kind: Thing
        name: things.web.test
        version: v1
    description: It serves.
    keywords:
    - www
    - http
    links:
    - name: Home
      url: https://web.test
    - name: Source
      url: https://git.test/web
    maintainers:
    - email: a@web.test
      name: A. Person
    provider: {}
relatedImages:
- image: IMAGE
  name: ""
schema: olm.bundle
`,
			notes: []string{"Chart.yaml says that the chart is deprecated: a catalog has that in an olm.deprecations, which is yours to write"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			registry, images := imagetest.Start(t)
			if _, err := registry.PushChart(t.Context(), "charts/web:1.2.0", "web", chart(test.files)); err != nil {
				t.Fatal(err)
			}
			var notes []string
			renderer := catalogrender.Renderer{
				Images: images, ChartPackage: test.as, Migrations: migrate(t),
				Note: func(_, what string) { notes = append(notes, what) },
			}
			ref := registry.Host() + "/charts/web:1.2.0"
			rendered, err := renderer.All(t.Context(), []string{ref})
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(strings.ReplaceAll(test.want, "IMAGE", ref), text(t, rendered)); diff != "" {
				t.Errorf("(-want +got)\n%s", diff)
			}
			if !slices.Equal(notes, test.notes) {
				t.Errorf("notes %q", notes)
			}
		})
	}
}

// migrate changes nothing of a chart.
func migrate(t *testing.T) *migrations.Migrations {
	t.Helper()
	found, err := migrations.NewMigrations("bundle-object-to-csv-metadata")
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// TestChartsOnThisMachine has a folder read as it would be packaged, and what is packaged: both
// get the image that a template makes.
func TestChartsOnThisMachine(t *testing.T) {
	t.Parallel()
	folder := t.TempDir()
	files := chart(map[string]string{".helmignore": "crds/draft.yaml\n", "crds/draft.yaml": "{{"})
	if err := os.CopyFS(filepath.Join(folder, "web"), files); err != nil {
		t.Fatal(err)
	}
	archive, err := testkit.Tar(testkit.File("web/Chart.yaml", chartYAML), testkit.File("web/templates/a.yaml", "a: b"))
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, "web-1.2.0.tgz"), testkit.Gzip(archive), 0o600); err != nil {
		t.Fatal(err)
	}
	var notes []string
	renderer := catalogrender.Renderer{Note: func(_, what string) { notes = append(notes, what) }}
	named := renderer
	named.ImageOf = template.Must(template.New("").Parse("oci.test/{{.Package}}:{{.Version}}"))
	wrong := renderer
	wrong.ImageOf = template.Must(template.New("").Parse("oci.test/{{.Package}}"))
	for _, ref := range []string{"web", "web-1.2.0.tgz"} {
		path := filepath.Join(folder, ref)
		rendered, err := named.All(t.Context(), []string{path})
		if err != nil || rendered.Bundles[0].Image != "oci.test/web:1.2.0" || len(rendered.Bundles[0].RelatedImages) != 1 || len(notes) > 0 {
			t.Errorf("%s: got %+v, notes %q: %v", ref, rendered, notes, err)
		}
		rendered, err = renderer.All(t.Context(), []string{path})
		if err != nil || rendered.Bundles[0].Image != "" || len(rendered.Bundles[0].RelatedImages) > 0 || len(notes) != 1 {
			t.Errorf("%s without an image: got %+v, notes %q: %v", ref, rendered, notes, err)
		}
		if _, err := wrong.All(t.Context(), []string{path}); err == nil || !strings.Contains(err.Error(), `naming the image of bundle "web.v1.2.0": `) {
			t.Errorf("%s: error %v", ref, err)
		}
		notes = nil
	}
}

// TestChartsThatAreRefused are none that could be installed.
func TestChartsThatAreRefused(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		files map[string]string
		want  string
	}{
		"a library":                     {map[string]string{"Chart.yaml": chartYAML + "type: library\n"}, `chart "web" is a library`},
		"no name":                       {map[string]string{"Chart.yaml": "apiVersion: v2\nversion: 1.0.0\n"}, "the chart has no name"},
		"a version that is none":        {map[string]string{"Chart.yaml": "apiVersion: v2\nname: web\nversion: one\n"}, `"one" is not a semantic version`},
		"a range that is none":          {map[string]string{"Chart.yaml": chartYAML + "kubeVersion: new\n"}, `kubeVersion: "new" is no range of versions`},
		"keywords that are a text":      {map[string]string{"Chart.yaml": chartYAML + "keywords: www\n"}, "reading Chart.yaml: "},
		"a definition that is none":     {map[string]string{"crds/a.yaml": "{{"}, "chart/crds/a.yaml: "},
		"a definition of another form":  {map[string]string{"crds/a.yaml": things + "  - none\n"}, `chart/crds/a.yaml: decoding CustomResourceDefinition "things.web.test": `},
		"a definition of long ago":      {map[string]string{"crds/a.yaml": strings.Replace(things, "io/v1", "io/v1beta1", 1)}, "[things.web.test] are not of version"},
		"a definition that is a bomb":   {map[string]string{"crds/a.yaml": "a: &a [" + strings.Repeat("x,", 3000) + "]\nb: &b [" + strings.Repeat("*a,", 3000) + "]\nc: [" + strings.Repeat("*b,", 3000) + "]\n"}, "chart/crds/a.yaml: "},
		"two definitions of one object": {map[string]string{"crds/a.yaml": things, "crds/b.yaml": strings.Replace(things, "Namespaced", "Cluster", 1)}, `chart/crds/b.yaml: CustomResourceDefinition "things.web.test" differs from the one in chart/crds/a.yaml`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			folder := t.TempDir()
			if err := os.CopyFS(folder, chart(test.files)); err != nil {
				t.Fatal(err)
			}
			_, err := catalogrender.Renderer{Note: func(string, string) {}}.All(t.Context(), []string{folder})
			if err == nil || !strings.Contains(err.Error(), test.want) || !strings.Contains(err.Error(), folder) {
				t.Errorf("error = %v, want one with %s", err, test.want)
			}
		})
	}
}
