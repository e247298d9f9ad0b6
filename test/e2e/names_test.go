package e2e_test

import (
	"context"
	"crypto/sha256"
	"fmt"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// TestNamesThatBecomeTheSame has two extensions, one of which is called as the name of
// the other is cut for Helm. What is done to one leaves the other as it is.
func TestNamesThatBecomeTheSame(t *testing.T) {
	t.Parallel()
	for order, name := range []string{"long-first", "short-first"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			long := name + "-" + strings.Repeat("x", 45)
			short := fmt.Sprintf("%s-%.8x", long[:36], sha256.Sum256([]byte(long)))
			extensions := []string{long, short}
			packages := map[string]string{long: name + "-l", short: name + "-s"}
			for _, extension := range extensions {
				pkg := packages[extension]
				publish(t, operators(pkg, "1.0.0", "1.1.0")...)
				makeNamespace(t, pkg)
				makeAccount(t, pkg)
				grant(t, pkg, "cluster-admin")
			}
			first, second := extensions[order], extensions[1-order]
			for _, extension := range []string{first, second} {
				pkg := packages[extension]
				extendOnly(t, extension, fromCatalog(pkg), version("1.0.0"), func(e *ocv1.ClusterExtension) {
					e.Spec.Namespace, e.Spec.Source.Catalog.PackageName = pkg, pkg
				})
				installed(t, extension, "1.0.0")
			}
			for _, extension := range []string{second, first} {
				update(t, extension, version("1.1.0"))
				installed(t, extension, "1.1.0")
			}
			before := recordsOf(t, second)

			remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: first}})
			nothingLeft(t, first)
			update(t, second, func(e *ocv1.ClusterExtension) { e.Annotations = map[string]string{"look": "again"} })
			remove(t, &corev1.Service{ObjectMeta: metav1.ObjectMeta{Namespace: packages[second], Name: packages[second]}})
			exists(t, &corev1.Service{}, packages[second], packages[second])
			condition(t, second, ocv1.TypeInstalled, "True Succeeded: Installed bundle registry.test/"+packages[second]+":v1.1.0 successfully")
			if after := recordsOf(t, second); after != before || before == "" {
				t.Errorf("records of %q are %s, were %s", second, after, before)
			}
		})
	}
}

// recordsOf are names and versions of the Secrets that an extension has in the system
// namespace.
func recordsOf(t *testing.T, extension string) string {
	t.Helper()
	owner := &ocv1.ClusterExtension{}
	if err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Name: extension}, owner); err != nil {
		t.Fatal(err)
	}
	secrets := &corev1.SecretList{}
	if err := theSuite.Admin.List(context.Background(), secrets, client.InNamespace(environment.SystemNamespace)); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	for i := range secrets.Items {
		if metav1.IsControlledBy(&secrets.Items[i], owner) {
			fmt.Fprintf(&text, "%s at %s; ", secrets.Items[i].Name, secrets.Items[i].ResourceVersion)
		}
	}
	return text.String()
}
