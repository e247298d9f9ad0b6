package e2e_test

import (
	"context"
	"fmt"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestImmutableFieldWaitsForAPerson has an upgrade change the selector of a
// Deployment: it goes on when somebody agrees, or deletes the object.
func TestImmutableFieldWaitsForAPerson(t *testing.T) {
	t.Parallel()
	for name, act := range map[string]func(*testing.T, string){
		"fixed-agreed": func(t *testing.T, name string) {
			t.Helper()
			update(t, name, func(extension *ocv1.ClusterExtension) {
				extension.Spec.Install = &ocv1.ClusterExtensionInstallConfig{ReplaceImmutable: []ocv1.ReplaceableKind{"Deployment"}}
			})
		},
		"fixed-deleted": func(t *testing.T, name string) {
			t.Helper()
			if err := theSuite.Admin.Delete(t.Context(), deploymentOf(t, name)); err != nil {
				t.Fatal(err)
			}
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			publishEdited(t, name, map[string]string{fmt.Sprintf("{app: %s}", name): fmt.Sprintf("{app: %s-two}", name)})
			extend(t, name, version("1.0.0"))
			installed(t, name, "1.0.0")
			first := deploymentOf(t, name)

			update(t, name, version("1.1.0"))
			condition(t, name, ocv1.TypeProgressing, fmt.Sprintf(`False Blocked: error for resolved bundle "%s.v1.1.0" with version "1.1.0": `+
				`trying to write Deployment %q in namespace %q: spec.selector cannot be changed; `+
				`delete the Deployment, so that it is created again, or add "Deployment" to spec.install.replaceImmutable`, name, first.Name, name))
			condition(t, name, ocv1.TypeInstalled, "True Succeeded: Installed bundle "+registryHost+"/"+name+":v1.0.0 successfully")
			if now := deploymentOf(t, name); now.UID != first.UID || now.ResourceVersion != first.ResourceVersion && now.Generation != first.Generation {
				t.Error("the Deployment was written")
			}

			act(t, name)
			installed(t, name, "1.1.0")
			if got := deploymentOf(t, name).Spec.Selector.MatchLabels["app"]; got != name+"-two" {
				t.Errorf("it selects %q", got)
			}
		})
	}
}

// deploymentOf is the one Deployment in a namespace.
func deploymentOf(t *testing.T, namespace string) *appsv1.Deployment {
	t.Helper()
	var found appsv1.DeploymentList
	eventually(t, "the Deployment", func(ctx context.Context) error {
		if err := theSuite.Admin.List(ctx, &found, client.InNamespace(namespace)); err != nil {
			return err
		}
		if len(found.Items) != 1 {
			return fmt.Errorf("there are %d", len(found.Items))
		}
		return nil
	})
	return &found.Items[0]
}
