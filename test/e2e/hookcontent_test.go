package e2e_test

import (
	"testing"

	corev1 "k8s.io/api/core/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestContentThatBecomesAHook (F26): a plan reports that the upgrade is blocked, and objects in use are kept. Another
// version drops the hooks of the first one.
func TestContentThatBecomesAHook(t *testing.T) {
	t.Parallel()
	const (
		name    = "chart-loom"
		account = "apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: loom\n"
		left    = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: init, annotations: {helm.sh/hook: pre-install}}\ndata: {a: b}\n"
		why     = `the pre-upgrade hook ServiceAccount "loom" in namespace "chart-loom" `
	)
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", map[string]string{"templates/account.yaml": account, "templates/init.yaml": left})))
	installed(t, name, "1.0.0")
	found := &corev1.ServiceAccount{}
	exists(t, found, name, "loom")
	admin := theSuite.Cluster.Kubeconfig()
	contains(t, command(t, admin, "tree", name), " ConfigMap init ", " of a hook")

	becomes := pushedChart(t, name, "2.0.0", map[string]string{
		"templates/account.yaml": account + "  annotations: {helm.sh/hook: \"pre-install,pre-upgrade\", helm.sh/hook-weight: \"-10\"}\n",
	})
	update(t, name, func(extension *ocv1.ClusterExtension) {
		extension.Spec.Suspend = true
		fromImage(becomes)(extension)
	})
	output, blocked := plan(t, admin, name)
	contains(t, output, "in the way:", why+"cannot run: an object of the installed version has its name", ` 1 to delete`, `delete   ConfigMap "init"`)
	if !blocked {
		t.Errorf("a plan finds nothing in the way:\n%s", output)
	}
	update(t, name, func(extension *ocv1.ClusterExtension) { extension.Spec.Suspend = false })
	conditionContains(t, name, ocv1.TypeReady, why+"has failed: an object of the installed version has its name")
	conditionContains(t, name, ocv1.TypeReady, "do not delete it, as the installed version uses it")
	again := &corev1.ServiceAccount{}
	exists(t, again, name, "loom")
	if again.UID != found.UID {
		t.Error("the ServiceAccount was replaced")
	}

	update(t, name, fromImage(pushedChart(t, name, "2.0.1", map[string]string{"templates/account.yaml": account})))
	installed(t, name, "2.0.1")
	gone(t, &corev1.ConfigMap{}, name, "init")
	exists(t, again, name, "loom")
	if again.UID != found.UID {
		t.Error("the ServiceAccount was replaced")
	}
}
