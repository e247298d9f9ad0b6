package admission_test

import (
	"context"
	"strings"
	"testing"

	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestUninstallGuard: an extension with an uninstall policy is not deleted in the
// foreground, by the request or by a finalizer, and in every other way it is.
func TestUninstallGuard(t *testing.T) { //nolint:paralleltest // a policy is for the whole cluster
	const (
		dir  = "../../config/guard"
		name = "operator-controller-uninstall-guard"
	)
	protected := func(name string, more ...string) *ocv1.ClusterExtension {
		made := extension(name, installer)
		made.Finalizers = append([]string{ocv1.UninstallPolicyFinalizer}, more...)
		create(t, made)
		t.Cleanup(func() {
			patch := client.RawPatch("application/merge-patch+json", []byte(`{"metadata": {"finalizers": null}}`))
			if err := client.IgnoreNotFound(admin.Patch(context.Background(), made, patch)); err != nil {
				t.Error(err)
			}
		})
		return made
	}
	deletion := func(ctx context.Context, extension *ocv1.ClusterExtension, how metav1.DeletionPropagation) error {
		return admin.Delete(ctx, extension.DeepCopy(), client.PropagationPolicy(how), client.DryRunAll)
	}
	one := protected("guarded")
	if err := kubectl(t.Context(), "apply", "-k", dir); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		if err := kubectl(context.Background(), "delete", "-k", dir); err != nil {
			t.Error(err)
		}
	})
	if err := poll(t.Context(), func(ctx context.Context) (bool, error) {
		err := deletion(ctx, one, metav1.DeletePropagationForeground)
		return apierrors.IsForbidden(err) && strings.Contains(err.Error(), name) && strings.Contains(err.Error(), "PrunePropagationPolicy=background"), nil
	}); err != nil {
		t.Fatalf("a deletion in the foreground is not refused: %v", err)
	}
	if err := deletion(t.Context(), protected("guarded-finalizer", metav1.FinalizerDeleteDependents), metav1.DeletePropagationBackground); !apierrors.IsForbidden(err) {
		t.Errorf("a deletion in the foreground by a finalizer: %v", err)
	}
	for name, config := range map[string]*ocv1.ClusterExtensionUninstallConfig{
		"orphan": {Policy: ocv1.UninstallPolicyOrphan},
		"keep":   {CustomResourceDefinitions: ocv1.DefinitionsUninstallPolicyKeep},
		"first":  {CustomResources: ocv1.CustomResourcesUninstallPolicyDeleteFirst},
	} {
		unseen := extension("guarded-unseen-"+name, installer)
		unseen.Spec.Uninstall = config
		create(t, unseen)
		if err := deletion(t.Context(), unseen, metav1.DeletePropagationForeground); !apierrors.IsForbidden(err) {
			t.Errorf("%s, which no controller has seen yet: %v", name, err)
		}
	}
	for _, how := range []metav1.DeletionPropagation{metav1.DeletePropagationBackground, metav1.DeletePropagationOrphan} {
		if err := deletion(t.Context(), one, how); err != nil {
			t.Errorf("%s: %v", how, err)
		}
	}
	if err := deletion(t.Context(), existing(t, "unguarded"), metav1.DeletePropagationForeground); err != nil {
		t.Errorf("without a policy: %v", err)
	}
}
