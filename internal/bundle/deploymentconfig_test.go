package bundle_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/testkit/rendering"
)

// TestAffinity: each of the three parts is replaced on its own, and an empty one
// takes that of the bundle away.
func TestAffinity(t *testing.T) {
	t.Parallel()
	const (
		node    = "nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: [{matchFields: [{key: a, operator: Exists}]}]}}"
		other   = "nodeAffinity: {preferredDuringSchedulingIgnoredDuringExecution: [{weight: 1, preference: {}}]}"
		pod     = "podAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: host}]}"
		against = "podAntiAffinity: {requiredDuringSchedulingIgnoredDuringExecution: [{topologyKey: zone}]}"
	)
	tests := map[string]struct {
		reason   string
		authored string
		config   string
		want     string
	}{
		"not set":              {reason: "nothing changes", authored: node, config: "env: []", want: node},
		"empty":                {reason: "takes all away", authored: node + "\n" + pod, config: "affinity: {}"},
		"empty and none there": {reason: "nothing to take away", config: "affinity: {}"},
		"empty part":           {reason: "takes that part away", authored: node + "\n" + pod, config: "affinity: {nodeAffinity: {}}", want: pod},
		"no terms": {
			reason: "is as good as empty", authored: node + "\n" + pod, want: pod,
			config: "affinity: {nodeAffinity: {requiredDuringSchedulingIgnoredDuringExecution: {nodeSelectorTerms: []}}}",
		},
		"empty pod parts": {
			reason: "nothing is left", authored: pod + "\n" + against,
			config: "affinity: {podAffinity: {}, podAntiAffinity: {preferredDuringSchedulingIgnoredDuringExecution: []}}",
		},
		"one part": {reason: "the others stay", authored: node + "\n" + pod, config: "affinity: {" + other + "}", want: other + "\n" + pod},
		"new part": {reason: "there was none", authored: node, config: "affinity: {" + against + "}", want: node + "\n" + against},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			b := bundleSupporting("A")
			pod := &b.CSV.Spec.InstallStrategy.StrategySpec.DeploymentSpecs[0].Spec.Template.Spec
			pod.Affinity = parseAffinity(t, tc.authored)
			config, err := bundle.ParseConfig(b, testNamespace, []byte("deploymentConfig: {"+tc.config+"}"))
			if err != nil {
				t.Fatal(err)
			}
			objects, err := rendering.Objects(bundle.Render(b, bundle.Options{InstallNamespace: testNamespace, Config: config}))
			if err != nil {
				t.Fatal(err)
			}
			rendered, found, err := unstructured.NestedMap(objects[0].Object, "spec", "template", "spec", "affinity")
			if err != nil || found != (tc.want != "") {
				t.Fatalf("there is an affinity: %t, %v (%s)", found, err, tc.reason)
			}
			encoded, err := yaml.Marshal(rendered)
			if err != nil {
				t.Fatal(err)
			}
			if tc.want == "" {
				return
			}
			if diff := cmp.Diff(parseAffinity(t, tc.want), parseAffinity(t, string(encoded))); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
		})
	}
}

// parseAffinity is nil for none.
func parseAffinity(t *testing.T, text string) *corev1.Affinity {
	t.Helper()
	var affinity *corev1.Affinity
	if err := yaml.UnmarshalStrict([]byte(text), &affinity); err != nil {
		t.Fatal(err)
	}
	return affinity
}
