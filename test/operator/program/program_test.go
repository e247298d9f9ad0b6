package main

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

func TestConvertWidget(t *testing.T) {
	t.Parallel()
	const group = "sample.clusterextensions.dev/"
	widget := func(version, field string) map[string]any {
		return map[string]any{"apiVersion": group + version, "kind": "Widget", "spec": map[string]any{field: int64(3)}}
	}
	for name, test := range map[string]struct {
		given map[string]any
		to    string
		want  map[string]any
	}{
		"to the newer":  {widget("v1alpha1", "size"), "v1beta1", widget("v1beta1", "units")},
		"to the older":  {widget("v1beta1", "units"), "v1alpha1", widget("v1alpha1", "size")},
		"to the same":   {widget("v1beta1", "units"), "v1beta1", widget("v1beta1", "units")},
		"without value": {map[string]any{"apiVersion": group + "v1alpha1"}, "v1beta1", map[string]any{"apiVersion": group + "v1beta1"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := &unstructured.Unstructured{Object: test.given}
			convertWidget(got, group+test.to)
			if diff := cmp.Diff(test.want, got.Object); diff != "" {
				t.Errorf("converted (-want +got):\n%s", diff)
			}
		})
	}
}

func TestSettings(t *testing.T) {
	t.Parallel()
	environment := map[string]string{"OPERATOR_VERSION": "1.1.0", "READY_AFTER": "3s"}
	got, err := settingsFrom(func(name string) string { return environment[name] })
	if err != nil {
		t.Fatal(err)
	}
	want := settings{
		version: "1.1.0", group: "sample.clusterextensions.dev", name: "sample-operator", readyIn: 3 * time.Second,
	}
	if got != want {
		t.Errorf("settings are %+v, want %+v", got, want)
	}
	if _, err := settingsFrom(func(string) string { return "soon" }); err == nil {
		t.Error("a duration of no length was taken")
	}
}
