package charts_test

import (
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/helmchart"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/image"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/internal/testkit/imagetest"
)

// ours renders one chart as the controller does.
type ours struct {
	engine  helmchart.Engine
	bundle  *bundle.Bundle
	refusal error // of the image or its files
}

// newOurs pulls the chart from a registry.
func newOurs(t *testing.T, chart packaged) ours {
	t.Helper()
	registry, config := imagetest.Start(t, "registry.test")
	if _, err := registry.PushChartLayers(t.Context(), "chart:v1", testkit.Layer{Blob: chart.archive, MediaType: testkit.ChartContent}); err != nil {
		t.Fatal(err)
	}
	pulled, err := image.Once(t.Context(), config, image.Request{Ref: "registry.test/chart:v1", Select: image.BundleContent})
	if err != nil {
		return ours{refusal: err}
	}
	defer pulled.Close()
	parsed, err := bundle.Parse(pulled.Files)
	return ours{engine: helmchart.New(), bundle: parsed, refusal: err}
}

// render returns what comes of the chart with values, a JSON object.
func (o ours) render(t *testing.T, at situation, values []byte) result {
	t.Helper()
	if o.refusal != nil {
		return result{refusal: o.refusal}
	}
	config, err := bundle.ParseConfig(o.bundle, at.namespace, []byte(`{"values":`+string(values)+`}`))
	if err != nil {
		return result{refusal: err}
	}
	rendered, err := bundle.Render(o.bundle, bundle.Options{
		InstallNamespace: at.namespace,
		Config:           config,
		Charts:           o.engine.For(t.Context()),
		Release:          bundle.ChartRelease{Name: at.release, IsUpgrade: at.isUpgrade, Kubernetes: at.kubernetes, APIs: at.served()},
	})
	if err != nil {
		return result{refusal: err}
	}
	made := result{objects: rendered.Objects}
	for _, one := range rendered.Hooks {
		made.hooks = append(made.hooks, hookOf{object: one.Object, events: texts(one.Events), policies: texts(one.Policies), weight: one.Weight})
	}
	made.order = map[string][]*unstructured.Unstructured{}
	for _, event := range runEvents() {
		made.order[event] = hook.Objects(hook.At(hook.Event(event), rendered.Hooks))
	}
	return made
}
