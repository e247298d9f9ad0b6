package e2e_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// user makes a user with a role of these rules in the whole cluster, and gives the
// kubeconfig.
func user(t *testing.T, name string, rules ...rbacv1.PolicyRule) (kubeconfig string) {
	t.Helper()
	kubeconfig, err := theSuite.Cluster.KubeconfigFor(name)
	if err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: "e2e-user-" + name}
	for _, object := range []client.Object{
		&rbacv1.ClusterRole{ObjectMeta: meta, Rules: rules},
		&rbacv1.ClusterRoleBinding{
			ObjectMeta: meta,
			Subjects:   []rbacv1.Subject{{Kind: rbacv1.UserKind, APIGroup: rbacv1.GroupName, Name: name}},
			RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: meta.Name},
		},
	} {
		if err := theSuite.Admin.Create(t.Context(), object); err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { remove(t, object) })
	}
	return kubeconfig
}

func readRule(resource string, names ...string) rbacv1.PolicyRule {
	return rbacv1.PolicyRule{
		APIGroups: []string{ocv1.GroupVersion.Group}, Resources: []string{resource}, ResourceNames: names, Verbs: []string{"get", "list"},
	}
}

// command runs a command of the binary that has to succeed.
func command(t *testing.T, kubeconfig string, args ...string) string {
	t.Helper()
	output, err := theSuite.LocalOutput(t.Context(), append(args, "--kubeconfig", kubeconfig)...)
	if err != nil {
		t.Fatalf("%v\n%s", err, output)
	}
	return output
}

// TestCommandsWithFewRights has users who may read no more than extensions and
// catalogs ask why it is this bundle, and which rights it takes. These are all that
// it takes to install, and to upgrade.
func TestCommandsWithFewRights(t *testing.T) {
	t.Parallel()
	const name = "few-rights"
	admin := theSuite.Cluster.Kubeconfig()
	viewer := user(t, "viewer", readRule("clusterextensions"), readRule("clustercatalogs"),
		rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{"services/proxy"}, Verbs: []string{"get"}})
	narrow := user(t, "narrow-viewer", readRule("clusterextensions", name), readRule("clustercatalogs"))

	all := operators(name, "1.0.0", "1.1.0")
	all[0].ConfigMaps = append(all[0].ConfigMaps, "dropped")
	publish(t, all...)
	makeNamespace(t, name)
	t.Cleanup(func() {
		remove(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + ":" + installer}})
		remove(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + ":" + installer}})
	})
	extendOnly(t, name, version("1.0.0"))
	serving(t, name)

	// Nothing is installed yet, and not even the ServiceAccount is there.
	rights := command(t, viewer, "bundle", "rbac", "clusterextension/"+name)
	apply(t, rights)
	installed(t, name, "1.0.0")

	explained := command(t, admin, "explain", name)
	if want := `"few-rights.v1.0.0" version "1.0.0" from catalog "few-rights"` + "\n"; !strings.HasPrefix(explained, want) {
		t.Errorf("explain says\n%s\nwant first\n%s", explained, want)
	}
	for _, args := range [][]string{{name}, {"clusterextension", name}, {"clusterextension/" + name}} {
		if diff := cmp.Diff(explained, command(t, viewer, append([]string{"explain"}, args...)...)); diff != "" {
			t.Errorf("explain %v as another user says (-admin +viewer)\n%s", args, diff)
		}
	}
	const unknown = "\nnot known: error listing ClusterExtensions: clusterextensions.olm.operatorframework.io is forbidden: "
	if got := command(t, narrow, "explain", name); !strings.Contains(got, unknown) || !strings.HasPrefix(got, `"few-rights.v1.0.0"`) {
		t.Errorf("explain says to who may read no other extension\n%s\nwant in it\n%s", got, unknown)
	}

	// The upgrade drops something, and takes more than what is granted.
	update(t, name, version("1.1.0"))
	conditionContains(t, name, ocv1.TypeProgressing, "pre-authorization failed: ")
	rights = command(t, admin, "bundle", "rbac", "clusterextension", name)
	if !strings.Contains(rights, "\n  - dropped\n") {
		t.Errorf("the rights do not do for what is dropped:\n%s", rights)
	}
	for user, kubeconfig := range map[string]string{"viewer": viewer, "narrow-viewer": narrow} {
		if diff := cmp.Diff(rights, command(t, kubeconfig, "bundle", "rbac", "clusterextension/"+name)); diff != "" {
			t.Errorf("rights as %s (-admin +user)\n%s", user, diff)
		}
	}
	apply(t, rights)
	installed(t, name, "1.1.0")
}

func apply(t *testing.T, manifest string) {
	t.Helper()
	if _, err := theSuite.KubectlOutput(t.Context(), manifest, "apply", "-f", "-"); err != nil {
		t.Fatal(err)
	}
}

// TestTheClusterSaysWhoIssuesCertificates prints the rights for an extension that is
// in a file only, on a cluster where nobody issues certificates for webhooks.
func TestTheClusterSaysWhoIssuesCertificates(t *testing.T) {
	t.Parallel()
	const name = "rights-hooked"
	operator := operators(name, "1.0.0")[0]
	pushBundle(t, operator, operator.BundleWithWebhooks())
	publishCatalog(t, name, testkit.Catalog(registryHost, operator))
	serving(t, name)
	file := filepath.Join(t.TempDir(), "extension.yaml")
	if err := os.WriteFile(file, []byte(`apiVersion: v1
kind: Namespace
metadata: {name: rights-hooked}
---
apiVersion: olm.operatorframework.io/v1
kind: ClusterExtension
metadata: {name: rights-hooked}
spec:
  namespace: rights-hooked
  serviceAccount: {name: installer}
  source:
    sourceType: Catalog
    catalog:
      packageName: rights-hooked
      selector: {matchLabels: {test: rights-hooked}}
`), 0o600); err != nil {
		t.Fatal(err)
	}
	admin := theSuite.Cluster.Kubeconfig()
	rights := command(t, admin, "bundle", "rbac", "-f", file)
	if !strings.Contains(rights, "\n  - "+operator.WebhookSecret()+"\n") || strings.Contains(rights, "certificates") {
		t.Errorf("the rights are not those for a Secret:\n%s", rights)
	}
	if rights := command(t, admin, "bundle", "rbac", "-f", file, "--certificates", "cert-manager"); !strings.Contains(rights, "certificates") {
		t.Errorf("the flag is of no effect:\n%s", rights)
	}
}
