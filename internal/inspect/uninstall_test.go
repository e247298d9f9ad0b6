package inspect

import (
	"testing"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/preview"
)

// TestPolicyInForce: that a deletion is blocked tells of a policy only where no hook can block it.
func TestPolicyInForce(t *testing.T) {
	t.Parallel()
	object := &unstructured.Unstructured{Object: map[string]any{"kind": "Job", "metadata": map[string]any{
		"name": "leave", "annotations": map[string]any{"helm.sh/hook": "pre-delete"},
	}}}
	leave, err := hook.Of(object)
	if err != nil {
		t.Fatal(err)
	}
	blocked := &ocv1.ClusterExtension{}
	blocked.Status.Conditions = []metav1.Condition{{Type: ocv1.TypeReady, Reason: ocv1.ReasonDeletionBlocked}}
	held := blocked.DeepCopy()
	held.Finalizers = []string{ocv1.UninstallPolicyFinalizer}
	bySpec := held.DeepCopy()
	bySpec.Spec.Uninstall = &ocv1.ClusterExtensionUninstallConfig{}
	for name, tc := range map[string]struct {
		ext   *ocv1.ClusterExtension
		hooks []hook.Hook
		want  bool
	}{
		"nothing is said":         {&ocv1.ClusterExtension{}, nil, false},
		"blocked":                 {blocked, nil, true},
		"blocked, with a hook":    {blocked, []hook.Hook{leave}, false},
		"a finalizer, and a hook": {held, []hook.Hook{leave}, true},
		"the spec has a policy":   {bySpec, nil, false},
	} {
		if got := hasPolicyInForce(tc.ext, tc.hooks); got != tc.want {
			t.Errorf("%s: got %v", name, got)
		}
	}
}

func TestUnrecorded(t *testing.T) {
	t.Parallel()
	recorded := []preview.InstalledObject{
		{Key: object.Key{GroupKind: object.DefinitionKind, Name: "things.test"}},
		{Key: object.Key{Name: "others.test"}}, // of another kind
	}
	uses := []installation.Use{{Definition: "things.test"}, {Definition: "others.test"}}
	if diff := cmp.Diff([]installation.Use{{Definition: "others.test"}}, unrecorded(recorded, uses)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}
