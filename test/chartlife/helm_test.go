package chartlife_test

import (
	"bytes"
	"cmp"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/Masterminds/semver/v3"
	"helm.sh/helm/v3/pkg/action"
	"helm.sh/helm/v3/pkg/chart"
	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/cli"

	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// realChart is a chart of a public repository, in one version or two, oldest first.
type realChart struct {
	name     string
	versions []archive
}

type archive struct {
	version, file string
	content       []byte
	chart         *chart.Chart
}

// realCharts returns the charts in the folder of real charts. It skips the test if the folder does not exist.
func realCharts(t *testing.T) []realChart {
	t.Helper()
	if *charts == "" {
		t.Skip("takes minutes; make test-long SUITE=chartlife runs it")
	}
	dir := testkit.Charts(t)
	folders, err := os.ReadDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	folders = slices.DeleteFunc(folders, func(one os.DirEntry) bool { return !one.IsDir() })
	var found []realChart
	for i, folder := range folders {
		const every = 3
		if *charts == "few" && i%every != 0 {
			continue
		}
		one := realChart{name: folder.Name()}
		files, err := filepath.Glob(filepath.Join(dir, folder.Name(), "*.tgz"))
		if err != nil {
			t.Fatal(err)
		}
		for _, file := range files {
			content, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			loaded, err := loader.LoadArchive(bytes.NewReader(content))
			if err != nil {
				t.Fatalf("%s: %v", file, err)
			}
			one.versions = append(one.versions, archive{version: loaded.Metadata.Version, file: file, content: content, chart: loaded})
		}
		slices.SortFunc(one.versions, func(a, b archive) int {
			return cmp.Compare(0, semver.MustParse(b.version).Compare(semver.MustParse(a.version)))
		})
		found = append(found, one)
	}
	return found
}

// first and last are the versions that a release begins and ends with.
func (r realChart) first() archive { return r.versions[0] }
func (r realChart) last() archive  { return r.versions[len(r.versions)-1] }

// push pushes a version to the registry, and returns the reference of the image by digest.
func (r realChart) push(t *testing.T, one archive) string {
	t.Helper()
	target := r.name + ":" + strings.ReplaceAll(one.version, "+", "_")
	digest, err := theSite.Registry.PushChartLayers(t.Context(), target, testkit.Layer{Blob: one.content, MediaType: testkit.ChartContent})
	if err != nil {
		t.Fatal(err)
	}
	return registryHost + "/" + r.name + "@" + digest
}

// helm is Helm as its program is, for releases in a namespace.
func helm(t *testing.T, namespace string) *action.Configuration {
	t.Helper()
	settings := cli.New()
	settings.KubeConfig = theSite.Cluster.Kubeconfig()
	settings.SetNamespace(namespace)
	config := &action.Configuration{}
	if err := config.Init(settings.RESTClientGetter(), namespace, "secret", func(string, ...any) {}); err != nil {
		t.Fatal(err)
	}
	return config
}

func helmInstall(t *testing.T, name string, of *chart.Chart, values map[string]any) error {
	t.Helper()
	install := action.NewInstall(helm(t, name))
	install.ReleaseName, install.Namespace, install.Timeout = name, name, patience
	_, err := install.Run(of, values)
	return err
}

func helmUpgrade(t *testing.T, name string, to *chart.Chart, values map[string]any) error {
	t.Helper()
	upgrade := action.NewUpgrade(helm(t, name))
	upgrade.Namespace, upgrade.Timeout = name, patience
	_, err := upgrade.Run(name, to, values)
	return err
}

func helmRollback(t *testing.T, name string, to int) error {
	t.Helper()
	rollback := action.NewRollback(helm(t, name))
	rollback.Version, rollback.Timeout = to, patience
	return rollback.Run(name)
}

func helmUninstall(t *testing.T, name string) error {
	t.Helper()
	uninstall := action.NewUninstall(helm(t, name))
	uninstall.Timeout = patience
	_, err := uninstall.Run(name)
	return err
}
