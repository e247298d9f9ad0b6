package bundle_test

import (
	"errors"
	"maps"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
)

// TestPodAnnotations: pods have all annotations of the ClusterServiceVersion as
// long as they can have so many.
func TestPodAnnotations(t *testing.T) {
	t.Parallel()
	const limit = 256 << 10
	// What every pod gets takes its place as well.
	fits := strings.Repeat(".", limit-len("alm-examples")-len("createdAt")-len("now")-len("olm.targetNamespaces"))
	tests := map[string]struct {
		reason   string
		csv      map[string]string
		template map[string]string
		want     []string
		refused  bool
	}{
		"fits": {
			reason: "pods that run have them",
			csv:    map[string]string{"alm-examples": fits, "createdAt": "now"},
			want:   []string{"alm-examples", "createdAt", "olm.targetNamespaces"},
		},
		"one byte more": {
			reason: "examples are for catalogs",
			csv: map[string]string{
				"alm-examples": fits + ".", "createdAt": "now", "description": "a", "operatorframework.io/x": "a",
				"olm.properties": "[]",
			},
			want: []string{"olm.properties", "olm.targetNamespaces"},
		},
		"of the template": {
			reason:   "whoever put it there wants it there",
			csv:      map[string]string{"alm-examples": fits + "."},
			template: map[string]string{"createdAt": "now"},
			want:     []string{"createdAt", "olm.targetNamespaces"},
		},
		"still too large": {
			reason:  "no pod can have so much",
			csv:     map[string]string{"olm.properties": fits, "a": strings.Repeat(".", 1<<10)},
			refused: true,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bundleSupporting("A")
			b.CSV.Annotations = tc.csv
			b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Annotations = tc.template
			objects, err := rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: testNamespace}))
			if refused := errors.As(err, new(*bundle.InvalidError)); refused != tc.refused || (err != nil) != tc.refused {
				t.Fatalf("error = %v, want an InvalidError: %t (%s)", err, tc.refused, tc.reason)
			}
			if tc.refused {
				return
			}
			annotations, _, err := unstructured.NestedStringMap(objects[0].Object, "spec", "template", "metadata", "annotations")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, slices.Sorted(maps.Keys(annotations))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// TestOperatorNamespaceOfConfig: a configuration may be what asks for the
// namespace.
func TestOperatorNamespaceOfConfig(t *testing.T) {
	t.Parallel()
	b := bundleSupporting("A")
	b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec.Containers = []corev1.Container{{Name: "manager"}}
	config, err := bundle.ParseConfig(b, testNamespace,
		[]byte(`deploymentConfig: {env: [{name: NAMESPACE, valueFrom: {fieldRef: {fieldPath: "metadata.annotations['olm.operatorNamespace']"}}}]}`))
	if err != nil {
		t.Fatal(err)
	}
	objects, err := rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: testNamespace, Config: config}))
	if err != nil {
		t.Fatal(err)
	}
	annotations, _, err := unstructured.NestedStringMap(objects[0].Object, "spec", "template", "metadata", "annotations")
	if err != nil || annotations["olm.operatorNamespace"] != testNamespace {
		t.Errorf("annotations = %v, %v, want the namespace", annotations, err)
	}
}
