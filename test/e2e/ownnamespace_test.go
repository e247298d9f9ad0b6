package e2e_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestF24NamespaceWithOthers is F24: an extension with a Namespace is not deleted while that contains objects of
// others, and is when they are gone. A plan names them.
func TestF24NamespaceWithOthers(t *testing.T) {
	t.Parallel()
	const name, inside = "f24-ledger", "f24-ledger-data"
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", map[string]string{
		"templates/namespace.yaml": "apiVersion: v1\nkind: Namespace\nmetadata: {name: " + inside + "}\n",
		"templates/inside.yaml":    "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: own, namespace: " + inside + "}\n",
	})))
	installed(t, name, "1.0.0")
	if output, err := theSuite.CommandOutput(t.Context(), "plan", name, "--delete"); err != nil || strings.Contains(output, "does not own") {
		t.Errorf("without objects of others: %v\n%s", err, output)
	}
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: inside, Name: "report"}}
	if err := theSuite.Admin.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	const text = `Namespace "f24-ledger-data" contains 1 object that the extension does not own: ConfigMap "report"`
	output, err := theSuite.CommandOutput(t.Context(), "plan", name, "--delete")
	if err == nil || !strings.Contains(output, text) || !strings.Contains(output, `f24-ledger-data: 1 to delete: ConfigMap "report"`) {
		t.Errorf("plan: %v\n%s", err, output)
	}
	extension := &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}}
	if err := theSuite.Admin.Delete(t.Context(), extension); err != nil {
		t.Fatal(err)
	}
	conditionContains(t, name, ocv1.TypeReady, "False DeletionBlocked: deletion is refused: "+text)
	exists(t, &corev1.ConfigMap{}, inside, "own")
	exists(t, &corev1.ConfigMap{}, inside, "report")
	if err := theSuite.Admin.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	// A change of the spec has the Namespace read again at once.
	update(t, name, func(extension *ocv1.ClusterExtension) {
		extension.Spec.Uninstall = &ocv1.ClusterExtensionUninstallConfig{Hooks: ocv1.HooksUninstallPolicyRun}
	})
	gone(t, &ocv1.ClusterExtension{}, "", name)
}
