package e2e_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// removeInstalled is what a manifest of install has in no namespace.
func removeInstalled(t *testing.T, name string) {
	t.Helper()
	meta := metav1.ObjectMeta{Name: name + ":" + name + "-installer"}
	t.Cleanup(func() {
		remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
		remove(t, &rbacv1.ClusterRoleBinding{ObjectMeta: meta})
		remove(t, &rbacv1.ClusterRole{ObjectMeta: meta})
		remove(t, &corev1.Namespace{ObjectMeta: metav1.ObjectMeta{Name: name}})
	})
}

// TestL5InstallWithOneCommand has nothing but a catalog at first, and an operator that serves
// when the command ends. What it prints otherwise installs another one: vector L5, in which
// the manifest is printed by a flag of catalog show.
func TestL5InstallWithOneCommand(t *testing.T) {
	t.Parallel()
	const name, printed = "one-command", "one-manifest"
	admin := theSuite.Cluster.Kubeconfig()
	for _, pkg := range []string{name, printed} {
		publish(t, operators(pkg, "1.0.0", "1.1.0")...)
		serving(t, pkg)
		removeInstalled(t, pkg)
	}

	output := command(t, admin, "install", name, "--catalog", name, "--version", "1.0.0", "--apply")
	if want := "clusterextension/one-command: version 1.0.0 is installed, and ready\n"; output != want {
		t.Errorf("got %q, want %q", output, want)
	}
	deploymentAvailable(t, name, name)
	// Once more, there is nothing to do.
	command(t, admin, "install", name, "--catalog", name, "--version", "1.0.0", "--apply")
	// What was said is not taken back by saying nothing of it.
	if _, err := theSuite.LocalOutput(t.Context(), "install", name, "--catalog", name, "--apply", "--kubeconfig", admin); err == nil ||
		!strings.Contains(err.Error(), `ClusterExtension "one-command" is there already, and its spec is another one: `) {
		t.Errorf("got error %v", err)
	}
	conditionContains(t, name, ocv1.TypeReady, `True Succeeded: "one-command.v1.0.0" version "1.0.0" is installed, from catalog "one-command"; newer but left out: `)

	apply(t, command(t, admin, "install", printed, "--catalog", printed))
	installed(t, printed, "1.1.0")
	listed := command(t, admin, "get", printed)
	contains(t, listed, printed+"   1.1.0       -           -         ")

	tree := command(t, admin, "tree", printed)
	contains(t, tree, "ClusterExtension "+printed+" 1.1.0 ", "in no namespace\n", "namespace "+printed+"\n", " Deployment "+printed+"  ", "Present\n")
	if strings.Contains(tree, "not known: ") || strings.Contains(tree, "Missing") {
		t.Errorf("not all is known, or there:\n%s", tree)
	}
	viewer := user(t, "viewer-of-trees", readRule("clusterextensions"),
		rbacv1.PolicyRule{APIGroups: []string{"apps"}, Resources: []string{"deployments"}, Verbs: []string{"get", "list"}})
	contains(t, command(t, viewer, "tree", printed), " Deployment "+printed+"  ", "not known: which objects are missing, which the release records say: ",
		"not known: which objects there are of kinds that you may not list: ")

	if _, err := theSuite.LocalOutput(t.Context(), "install", "no-such-package", "--apply", "--kubeconfig", admin); err == nil || !strings.Contains(err.Error(), "no bundle is chosen: ") {
		t.Errorf("got error %v", err)
	}
}

// TestInstallTellsWhyNot has a user who may read, and write nothing.
func TestInstallTellsWhyNot(t *testing.T) {
	t.Parallel()
	const name = "one-command-refused"
	publish(t, operators(name, "1.0.0")...)
	serving(t, name)
	viewer := user(t, "viewer-of-packages", readRule("clusterextensions"), readRule("clustercatalogs"),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services/proxy"}, Verbs: []string{"get"}})
	_, err := theSuite.LocalOutput(t.Context(), "install", name, "--catalog", name, "--apply", "--kubeconfig", viewer)
	if err == nil || !strings.Contains(err.Error(), `applying Namespace "one-command-refused": namespaces "one-command-refused" is forbidden: `) {
		t.Errorf("got error %v", err)
	}
	if output := command(t, viewer, "install", name, "--catalog", name); !strings.HasPrefix(output, "---\napiVersion: v1\nkind: Namespace\n") {
		t.Errorf("got\n%s", output)
	}
}

// TestInstallEndsWhenAPersonHasToAct has something in the way that belongs to somebody else.
func TestInstallEndsWhenAPersonHasToAct(t *testing.T) {
	t.Parallel()
	const name = "one-command-in-vain"
	publish(t, operators(name, "1.0.0")...)
	serving(t, name)
	removeInstalled(t, name)
	makeNamespace(t, name)
	foreign := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings"}}
	if err := theSuite.Admin.Create(t.Context(), foreign); err != nil {
		t.Fatal(err)
	}
	_, err := theSuite.LocalOutput(t.Context(), "install", name, "--catalog", name, "--apply", "--kubeconfig", theSuite.Cluster.Kubeconfig())
	if err == nil || !strings.Contains(err.Error(), "exit status 1") {
		t.Fatalf("got error %v", err)
	}
	contains(t, err.Error(), `clusterextension/one-command-in-vain is not ready, and a person has to act: `, `ConfigMap "settings"`)
}
