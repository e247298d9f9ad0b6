package applier

import (
	"errors"
	"slices"
	"testing"
	"time"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	dynamicfake "k8s.io/client-go/dynamic/fake"
	metadatafake "k8s.io/client-go/metadata/fake"
	clienttesting "k8s.io/client-go/testing"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/usage"
)

// TestConversionOfDeniedDeletion is F22: a rule of the cluster that protects a CRD refuses the garbage collector, too. The
// CRD stays, so its conversion must stay: without it, the API server drops fields of custom resources.
func TestConversionOfDeniedDeletion(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		refusal string
		ended   bool
	}{
		"F22: no permission":   {`User "s" cannot delete resource "customresourcedefinitions" in API group "apiextensions.k8s.io" at the cluster scope`, true},
		"F22: a policy":        {`ValidatingAdmissionPolicy 'p' with binding 'b' denied request: CRDs are protected`, false},
		"F22: a webhook":       {`admission webhook "w.test" denied the request: User "s" cannot delete resource "x"`, false},
		"F22: another refusal": {`it is protected`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			owner := object.Owner{Name: "x", UID: "uid", Namespace: "ns"}
			crd := &unstructured.Unstructured{Object: map[string]any{
				"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": map[string]any{"name": "clocks.test"},
				"spec": map[string]any{"conversion": map[string]any{"strategy": "Webhook"}},
			}}
			crd.SetOwnerReferences([]metav1.OwnerReference{*owner.Reference()})
			client := dynamicfake.NewSimpleDynamicClient(runtime.NewScheme(), crd)
			refusal := apierrors.NewForbidden(usage.DefinitionResource.GroupResource(), crd.GetName(), errors.New(tc.refusal))
			client.PrependReactor("delete", "*", func(clienttesting.Action) (bool, runtime.Object, error) { return true, nil, refusal })
			a := &Applier{config: Config{Now: time.Now}, memories: map[string]*memory{}}
			reader := metadatafake.NewSimpleMetadataClient(metadatafake.NewTestScheme())
			one := deletable{key: object.KeyOf(crd), defines: schema.GroupVersionResource{Group: "test", Version: "v1", Resource: "clocks"}, converts: true}
			_, err := a.deleteConverted(t.Context(), client, reader, owner, one)
			isEnded := slices.ContainsFunc(client.Actions(), func(action clienttesting.Action) bool { return action.GetVerb() == "patch" })
			if isEnded != tc.ended || (err == nil) != tc.ended {
				t.Errorf("the conversion is ended: %t (%v)", isEnded, err)
			}
		})
	}
}
