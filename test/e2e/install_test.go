package e2e_test

import (
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

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
	noFalseAlarm(t, name)
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
	noFalseAlarm(t, printed)
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

// noFalseAlarm checks that no event warned of what was written together with an extension (F8).
func noFalseAlarm(t *testing.T, extension string) {
	t.Helper()
	var events corev1.EventList
	if err := theSuite.Admin.List(t.Context(), &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		t.Fatal(err)
	}
	for i := range events.Items {
		event := &events.Items[i]
		if event.InvolvedObject.Name == extension && event.Type == corev1.EventTypeWarning && event.Reason == ocv1.ReasonRetrying {
			t.Errorf("F8: event %s of %s: %s", event.Reason, extension, event.Message)
		}
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

// TestInstallIsCalledAgain begins with a namespace to watch that is not there, which is told before
// anything is written, goes on from where an interruption leaves it, and does not take an
// extension of somebody else for its own.
func TestInstallIsCalledAgain(t *testing.T) {
	t.Parallel()
	const name, watched = "one-command-again", "one-command-again-watched"
	admin := theSuite.Cluster.Kubeconfig()
	publishWatcher(t, name)
	serving(t, name)
	removeInstalled(t, name)
	install := func(more ...string) error {
		_, err := theSuite.LocalOutput(t.Context(), append([]string{"install", name, "--apply", "--kubeconfig", admin}, more...)...)
		return err
	}
	asked := []string{"--catalog", name, "--watch-namespace", watched}
	if err := install(asked...); err == nil || !strings.Contains(err.Error(), `namespace "one-command-again-watched", of Role `) {
		t.Fatalf("got error %v", err)
	}
	if err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Name: name}, &corev1.Namespace{}); !apierrors.IsNotFound(err) {
		t.Errorf("something was written, or not read: %v", err)
	}
	makeNamespace(t, watched)
	whole := command(t, admin, append([]string{"install", name}, asked...)...)
	var begun []string
	for document := range strings.SplitSeq(whole, "---\n") {
		if strings.Contains(document, "kind: Namespace\n") || strings.Contains(document, "kind: ClusterExtension\n") {
			begun = append(begun, document)
		}
	}
	apply(t, strings.Join(begun, "---\n"))
	if err := theSuite.Admin.Create(t.Context(), &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name + "-installer"}}); err != nil {
		t.Fatal(err)
	}
	if err := install(asked...); err != nil {
		t.Fatal(err)
	}
	update(t, name, func(ext *ocv1.ClusterExtension) { ext.Spec.Source.Catalog.Version = "1.x" })
	if err := install(asked...); err == nil || !strings.Contains(err.Error(), "its spec is another one: edit it; what differs is spec.source.catalog.version") {
		t.Errorf("got error %v", err)
	}
	if err := install("--catalog", name, "--watch-namespace", ""); err == nil || !strings.Contains(err.Error(), "--watch-namespace is empty, which would mean all namespaces") {
		t.Errorf("got error %v", err)
	}
}

// TestInstallOfWhatTakesAList names one namespace to watch for a bundle for several alone.
func TestInstallOfWhatTakesAList(t *testing.T) {
	t.Parallel()
	const name = "one-command-list"
	publishWatcher(t, name)
	serving(t, name)
	output := command(t, theSuite.Cluster.Kubeconfig(), "install", name, "--catalog", name, "--watch-namespace", "team")
	contains(t, output, "inline:\n      watchNamespaces:\n      - team\n")
}

// TestInstallEndsAtAConflict has something in the way that belongs to somebody else: nothing is written
// that the controller would try to install until nobody waits any more.
func TestInstallEndsAtAConflict(t *testing.T) {
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
	contains(t, err.Error(), `nothing was applied: ConfigMap "settings" in namespace "one-command-in-vain" exists already and belongs to `, "delete ")
	for _, unwritten := range []client.Object{
		&ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}},
		&corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name + "-installer"}},
	} {
		if err := theSuite.Admin.Get(t.Context(), client.ObjectKeyFromObject(unwritten), unwritten); !apierrors.IsNotFound(err) {
			t.Errorf("%T was written, or not read: %v", unwritten, err)
		}
	}
}

// TestInstallLeavesServiceAccountsAlone has a ServiceAccount of somebody else, of the name that
// the installer would have: its pods would get the rights of the extension.
func TestInstallLeavesServiceAccountsAlone(t *testing.T) {
	t.Parallel()
	const name = "one-command-account"
	publish(t, operators(name, "1.0.0")...)
	serving(t, name)
	removeInstalled(t, name)
	makeNamespace(t, name)
	account := &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name + "-installer"}}
	if err := theSuite.Admin.Create(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	admin := theSuite.Cluster.Kubeconfig()
	_, err := theSuite.LocalOutput(t.Context(), "install", name, "--catalog", name, "--apply", "--kubeconfig", admin)
	if err == nil || !strings.Contains(err.Error(), `ServiceAccount "one-command-account/one-command-account-installer" exists already, and its users would get the permissions of this extension: `) {
		t.Fatalf("got error %v", err)
	}
	role := &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + ":" + name + "-installer"}}
	if err := theSuite.Admin.Get(t.Context(), client.ObjectKeyFromObject(role), role); !apierrors.IsNotFound(err) {
		t.Errorf("rights were written, or not read: %v", err)
	}
	// What the printed manifest has made is no stranger's.
	if err := theSuite.Admin.Delete(t.Context(), account); err != nil {
		t.Fatal(err)
	}
	apply(t, command(t, admin, "install", name, "--catalog", name))
	command(t, admin, "install", name, "--catalog", name, "--apply")
}

// TestInstallDoesNotWaitForEver gives an extension hardly any time.
func TestInstallDoesNotWaitForEver(t *testing.T) {
	t.Parallel()
	_, err := theSuite.LocalOutput(t.Context(), "install", "any", "--apply", "--timeout", "-1s", "--kubeconfig", theSuite.Cluster.Kubeconfig())
	if err == nil || !strings.Contains(err.Error(), "--timeout -1s: it cannot be negative") {
		t.Errorf("got error %v", err)
	}
	const name = "one-command-late"
	publish(t, operators(name, "1.0.0")...)
	serving(t, name)
	removeInstalled(t, name)
	_, err = theSuite.LocalOutput(t.Context(), "install", name, "--catalog", name, "--apply", "--timeout", "1ms", "--kubeconfig", theSuite.Cluster.Kubeconfig())
	if err == nil || !strings.Contains(err.Error(), "clusterextension/one-command-late is not ready after 1ms, and the controller goes on: ") {
		t.Errorf("got error %v", err)
	}
}
