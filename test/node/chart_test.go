//go:build linux

package node_test

import (
	"maps"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"

	"github.com/clusterextensions/operator-controller/test/environment"
)

// renderChart is what Helm would apply, with the image of the controller.
func renderChart(t *testing.T) string {
	t.Helper()
	chart, err := loader.Load(filepath.Join(theSuite.Root(), "charts", "operator-controller"))
	if err != nil {
		t.Fatal(err)
	}
	release := chartutil.ReleaseOptions{Name: "operator-controller", Namespace: environment.SystemNamespace, IsInstall: true, Revision: 1}
	repository, digest, _ := strings.Cut(theSuite.image, "@")
	image := map[string]any{"image": map[string]any{"repository": repository, "digest": digest}}
	values, err := chartutil.ToRenderValues(chart, image, release, nil)
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
	return manifest.String()
}
