package object

import (
	"testing"

	"k8s.io/apimachinery/pkg/runtime/schema"
)

func TestWavesPutFirstWhatOthersReferTo(t *testing.T) {
	t.Parallel()
	order := []string{"ServiceAccount", "CustomResourceDefinition", "ClusterRole", "RoleBinding", "Service", "Deployment", "ValidatingWebhookConfiguration"}
	for i, kind := range order[1:] {
		if WaveOf(schema.GroupKind{Kind: kind}) <= WaveOf(schema.GroupKind{Kind: order[i]}) {
			t.Errorf("%s does not come after %s", kind, order[i])
		}
	}
}
