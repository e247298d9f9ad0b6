package e2e_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/test/environment"
)

// TestImpersonationByNamespace runs the controller with the rights of the overlay: it
// acts as ServiceAccounts of those namespaces only that let it, goes on as soon as they
// do, and stops when they do not any more. What is installed stays, and can be removed.
//
//nolint:paralleltest // it takes a right from the controller of all tests
func TestImpersonationByNamespace(t *testing.T) {
	const granted, ungranted = "lets-in", "lets-nobody-in"
	overlay := filepath.Join(theSuite.Root(), "config", "overlays", "impersonate-by-namespace")
	letIn := func(namespace string) {
		t.Helper()
		if err := theSuite.Kubectl(t.Context(), "apply", "-n", namespace, "-k", filepath.Join(overlay, "namespace")); err != nil {
			t.Fatal(err)
		}
	}
	withdrawImpersonation(t, overlay)
	for _, name := range []string{granted, ungranted} {
		publish(t, operators(name, "1.0.0")...)
		extend(t, name)
	}
	const refusal = "the controller may not act as ServiceAccount \"" + installer + "\" in namespace \"" + ungranted + "\"; " +
		"grant \"" + environment.ControllerUser + "\" impersonate on serviceaccounts in this namespace: " +
		"`kubectl apply -n " + ungranted + " -k config/overlays/impersonate-by-namespace/namespace` does"
	conditionContains(t, ungranted, ocv1.TypeReady, refusal)
	letIn(granted)
	installed(t, granted, "1.0.0")
	conditionContains(t, ungranted, ocv1.TypeReady, refusal)
	letIn(ungranted)
	installed(t, ungranted, "1.0.0")

	if err := theSuite.Kubectl(t.Context(), "delete", "-n", ungranted, "-k", filepath.Join(overlay, "namespace")); err != nil {
		t.Fatal(err)
	}
	remove(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: ungranted, Name: "settings"}})
	conditionContains(t, ungranted, ocv1.TypeReady, refusal)
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: ungranted}})
	gone(t, &corev1.ServiceAccount{}, ungranted, ungranted)
}

// withdrawImpersonation gives the controller the ClusterRole of the overlay until the
// test ends.
func withdrawImpersonation(t *testing.T, overlay string) {
	t.Helper()
	built, err := theSuite.KubectlOutput(t.Context(), "", "kustomize", overlay)
	if err != nil {
		t.Fatal(err)
	}
	role := ""
	for document := range strings.SplitSeq(built, "\n---\n") {
		if strings.Contains(document, "\nkind: ClusterRole\n") && strings.Contains(document, "\n  name: operator-controller-manager-role\n") {
			role = document
		}
	}
	replace := func(ctx context.Context, input string, from ...string) error {
		_, err := theSuite.KubectlOutput(ctx, input, append([]string{"apply", "--server-side", "--force-conflicts"}, from...)...)
		return err
	}
	t.Cleanup(func() {
		if err := replace(context.WithoutCancel(t.Context()), "", "-k", filepath.Join(theSuite.Root(), "config", "rbac")); err != nil {
			t.Error(err)
		}
		mayImpersonate(t, true)
	})
	if err := replace(t.Context(), role, "-f", "-"); err != nil {
		t.Fatal(err)
	}
	mayImpersonate(t, false)
}

// mayImpersonate waits until the API server knows whether the controller may act as any
// ServiceAccount.
func mayImpersonate(t *testing.T, want bool) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.WithoutCancel(t.Context()), patience)
	defer cancel()
	for ctx.Err() == nil {
		review := &authorizationv1.SubjectAccessReview{Spec: authorizationv1.SubjectAccessReviewSpec{
			User:               environment.ControllerUser,
			ResourceAttributes: &authorizationv1.ResourceAttributes{Verb: "impersonate", Resource: "serviceaccounts", Namespace: "anywhere", Name: "any"},
		}}
		if err := theSuite.Admin.Create(ctx, review); err != nil {
			t.Error(err)
			return
		}
		if review.Status.Allowed == want {
			return
		}
		time.Sleep(50 * time.Millisecond)
	}
	t.Errorf("that the controller may impersonate anybody is not %t", want)
}
