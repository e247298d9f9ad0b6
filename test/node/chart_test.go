//go:build linux

package node_test

import (
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// renderChart writes what Helm would apply, and gives its path from the checkout.
func renderChart(t *testing.T) string {
	t.Helper()
	chart, err := loader.Load(filepath.Join(theSuite.Root(), "charts", "operator-controller"))
	if err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "operator-controller", Namespace: environment.SystemNamespace, IsInstall: true, Revision: 1}
	values, err := chartutil.ToRenderValues(chart, nil, release, nil)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(chart, values)
	if err != nil {
		t.Fatal(err)
	}
	var manifest strings.Builder
	for _, name := range slices.Sorted(maps.Keys(rendered)) {
		if strings.HasSuffix(name, ".yaml") && strings.TrimSpace(rendered[name]) != "" {
			manifest.WriteString("---\n" + rendered[name] + "\n")
		}
	}
	file := filepath.Join(t.TempDir(), "chart.yaml")
	if err := os.WriteFile(file, []byte(manifest.String()), 0o600); err != nil {
		t.Fatal(err)
	}
	relative, err := filepath.Rel(theSuite.Root(), file)
	if err != nil {
		t.Fatal(err)
	}
	return relative
}
