package release_test

import (
	"strings"
	"testing"

	"helm.sh/helm/v3/pkg/chart/loader"
	"helm.sh/helm/v3/pkg/chartutil"
	"helm.sh/helm/v3/pkg/engine"
)

// The chart has the version and the image of the release.
func TestChart(t *testing.T) {
	t.Parallel()
	needRelease(t)
	loaded, err := loader.Load(file(t, "operator-controller-*.tgz"))
	if err != nil {
		t.Fatal(err)
	}
	if loaded.Metadata.AppVersion != version() || "v"+loaded.Metadata.Version != version() {
		t.Errorf("the chart is %s, of %s", loaded.Metadata.Version, loaded.Metadata.AppVersion)
	}
	values, err := chartutil.ToRenderValues(loaded, nil, chartutil.ReleaseOptions{Name: "c", Namespace: "olmv1-system"}, nil)
	if err != nil {
		t.Fatal(err)
	}
	rendered, err := engine.Render(loaded, values)
	if err != nil {
		t.Fatal(err)
	}
	repository, rest, _ := strings.Cut(wanted(t), ":"+version())
	wantImage(t, rendered["operator-controller/templates/deployment.yaml"], repository+rest)
}
