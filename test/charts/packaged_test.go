package charts_test

import (
	"bytes"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/rogpeppe/go-internal/txtar"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// packaged is a chart as its publisher packages it.
type packaged struct {
	name    string
	archive []byte

	// values are required to render something.
	values map[string]any
}

// defaults returns the values of a chart and of the charts in it; none if Helm refuses the chart.
func (p packaged) defaults() map[string]any {
	loaded, err := loader.LoadArchive(bytes.NewReader(p.archive))
	if err != nil {
		return nil
	}
	values, err := chartutil.CoalesceValues(loaded, p.values)
	if err != nil {
		return nil
	}
	return values
}

// files are the files of a chart by their path in it.
type files map[string]string

// archive packages files as "helm package" does.
func archive(t *testing.T, chart files) []byte {
	t.Helper()
	var entries []testkit.TarEntry
	for _, name := range slices.Sorted(maps.Keys(chart)) {
		entries = append(entries, testkit.File("chart/"+name, chart[name]))
	}
	return compressed(t, entries...)
}

func compressed(t *testing.T, entries ...testkit.TarEntry) []byte {
	t.Helper()
	content, err := testkit.Tar(entries...)
	if err != nil {
		t.Fatal(err)
	}
	return testkit.Gzip(content)
}

// ownCharts returns the charts of this package and of the tests of the engine.
func ownCharts(t *testing.T) []packaged {
	t.Helper()
	var charts []packaged
	for _, from := range []struct{ folder, suffix string }{{"testdata", ""}, {"../../internal/helmchart/testdata", "-of-engine"}} {
		names, err := filepath.Glob(filepath.Join(from.folder, "*.txtar"))
		if err != nil || len(names) == 0 {
			t.Fatalf("no charts in %s: %v", from.folder, err)
		}
		for _, name := range names {
			text, err := os.ReadFile(name)
			if err != nil {
				t.Fatal(err)
			}
			chart, values := chartIn(t, text)
			charts = append(charts, packaged{strings.TrimSuffix(filepath.Base(name), ".txtar") + from.suffix, archive(t, chart), values})
		}
	}
	made := madeCharts(t)
	for _, name := range slices.Sorted(maps.Keys(made)) {
		charts = append(charts, packaged{name: name, archive: archive(t, made[name])})
	}
	return charts
}

// chartIn returns the files below chart/ of an archive of test data, and the values in it.
func chartIn(t *testing.T, text []byte) (chart files, values map[string]any) {
	t.Helper()
	chart = files{}
	for _, file := range txtar.Parse(text).Files {
		if name, isChart := strings.CutPrefix(file.Name, "chart/"); isChart {
			chart[name] = string(file.Data)
			continue
		}
		if err := yaml.Unmarshal(file.Data, &values); err != nil {
			t.Fatal(err)
		}
	}
	return chart, values
}

// realCharts returns the archives in the folders of real charts.
func realCharts(t *testing.T) []packaged {
	t.Helper()
	folder := testkit.Charts(t)
	names, err := filepath.Glob(filepath.Join(folder, "*", "*.tgz"))
	if err != nil || len(names) == 0 {
		t.Fatalf("no archives in %s: %v", folder, err)
	}
	charts := make([]packaged, len(names))
	for i, name := range names {
		content, err := os.ReadFile(name)
		if err != nil {
			t.Fatal(err)
		}
		charts[i] = packaged{name: strings.TrimSuffix(filepath.Base(name), ".tgz"), archive: content}
		if err := yaml.Unmarshal([]byte(needed[filepath.Base(filepath.Dir(name))]), &charts[i].values); err != nil {
			t.Fatal(err)
		}
	}
	return charts
}

// needed are values by the folder of a chart that renders nothing without.
var needed = map[string]string{
	"argocd-apps": `
applications:
  shop:
    namespace: argocd
    additionalLabels: {team: shop}
    additionalAnnotations: {note: "a"}
    finalizers: [resources-finalizer.argocd.argoproj.io]
    project: "{{ .Release.Name }}"
    source: {repoURL: https://git.example/shop.git, targetRevision: HEAD, path: deploy, directory: {recurse: true}}
    destination: {server: https://kubernetes.default.svc, namespace: shop}
    syncPolicy: {automated: {prune: false, selfHeal: true}, retry: {limit: 5}}
    revisionHistoryLimit: 3
projects:
  shop:
    namespace: argocd
    description: The shop
    sourceRepos: ["*"]
    destinations: [{namespace: shop, server: https://kubernetes.default.svc}]
    clusterResourceWhitelist: [{group: "", kind: Namespace}]
    roles: [{name: read, policies: ["p, proj:shop:read, applications, get, shop/*, allow"]}]
`,
}
