package applier_test

import (
	"slices"
	"strings"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestWarnings: what the API server says of an object that is written comes with the result,
// once, although it is said of the dry run too; an operation without requests has none.
func TestWarnings(t *testing.T) {
	t.Parallel()
	f := newFixtureWith(t, "warnings", "deployments")
	deployment := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "apps/v1", "kind": "Deployment", "metadata": map[string]any{"name": "d", "namespace": f.owner.Namespace},
		"spec": map[string]any{
			"replicas": int64(0),
			"selector": map[string]any{"matchLabels": map[string]any{"app": "d"}},
			"template": map[string]any{
				"metadata": map[string]any{"labels": map[string]any{"app": "d"}},
				"spec": map[string]any{
					"nodeSelector": map[string]any{"beta.kubernetes.io/os": "linux"},
					"containers":   []any{map[string]any{"name": "c", "image": "example.com/c"}},
				},
			},
		},
	}}
	warnings := f.apply(t, "1.0.0", deployment).Warnings
	if len(warnings) != 1 || !strings.Contains(warnings[0], "beta.kubernetes.io/os") {
		t.Errorf("warnings %q, want one of the node selector", warnings)
	}
	f.settle(t)
	if result := f.repair(t); len(result.Warnings) > 0 {
		t.Errorf("warnings of a pass without requests: %q", result.Warnings)
	}
	if err := unstructured.SetNestedField(deployment.Object, "linux", "spec", "template", "spec", "nodeSelector", "beta.kubernetes.io/arch"); err != nil {
		t.Fatal(err)
	}
	warnings = f.apply(t, "1.1.0", deployment).Warnings
	if len(warnings) != 2 || !slices.IsSorted(warnings) {
		t.Errorf("warnings of an upgrade %q, want two, sorted", warnings)
	}
}
