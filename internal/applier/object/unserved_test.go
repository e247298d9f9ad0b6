package object

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/runtime/schema"
)

// TestUnknownKindsThatNobodyBrings: what Kubernetes itself has in another version is told
// apart from what can be installed.
func TestUnknownKindsThatNobodyBrings(t *testing.T) {
	t.Parallel()
	tests := map[string]bool{
		"policy/v1beta1 PodDisruptionBudget": true,
		"apps/v1beta1 Deployment":            true,
		"v2 Service":                         true,
		"admissionregistration.k8s.io/v1beta1 MutatingWebhookConfiguration": true,
		"apiextensions.k8s.io/v1beta1 CustomResourceDefinition":             true,
		"apiregistration.k8s.io/v1beta1 APIService":                         true,
		"monitoring.coreos.com/v1 ServiceMonitor":                           false,
		"snapshot.storage.k8s.io/v1 VolumeSnapshot":                         false,
		"gateway.networking.k8s.io/v1 Gateway":                              false,
		"security.openshift.io/v1 SecurityContextConstraints":               false,
	}
	for text, want := range tests {
		t.Run(text, func(t *testing.T) {
			t.Parallel()
			version, kind, _ := strings.Cut(text, " ")
			err := newUnknownKindsError(map[schema.GroupVersionKind]struct{}{schema.FromAPIVersionAndKind(version, kind): {}})
			named := kind + " (" + version + ")"
			if diff := cmp.Diff([]string{named}, err.Kinds); diff != "" {
				t.Errorf("kinds (-want +got):\n%s", diff)
			}
			if got := len(err.BuiltIn) > 0; got != want {
				t.Errorf("it is built in: %t, want %t", got, want)
			}
			for _, said := range []string{err.Error(), err.Summary()} {
				if got := strings.Contains(said, "another version of Kubernetes"); got != want || !strings.Contains(said, named) {
					t.Errorf("it says %q", said)
				}
			}
		})
	}
}
