package e2e_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"testing/fstest"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
	"github.com/clusterextensions/operator-controller/test/argocd"
)

// manual lets each upgrade wait.
func manual(extension *ocv1.ClusterExtension) {
	extension.Spec.Source.Catalog.UpgradeApproval = ocv1.UpgradeApprovalManual
}

func approved(version, digest string) func(*ocv1.ClusterExtension) {
	return func(extension *ocv1.ClusterExtension) {
		extension.Spec.Source.Catalog.ApprovedVersion, extension.Spec.Source.Catalog.ApprovedDigest = version, digest
	}
}

// pending waits until an upgrade to a version waits for approval, and gives what the status
// says of it.
func pending(t *testing.T, extension, version string) ocv1.PendingUpgrade {
	t.Helper()
	found := &ocv1.ClusterExtension{}
	eventually(t, extension+" waits with "+version, func(ctx context.Context) error {
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: extension}, found); err != nil {
			return err
		}
		if is := found.Status.Pending; is == nil || is.Bundle.Version != version || found.Status.ObservedGeneration != found.Generation {
			return fmt.Errorf("status is %+v", found.Status)
		}
		return nil
	})
	return *found.Status.Pending
}

// approvalEvents are the notes of events that tell of a version that waits.
func approvalEvents(t *testing.T, extension, version string) int {
	t.Helper()
	var events corev1.EventList
	if err := theSuite.Admin.List(t.Context(), &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
		t.Fatal(err)
	}
	count := 0
	for i := range events.Items {
		e := &events.Items[i]
		if e.InvolvedObject.Name == extension && e.Reason == ocv1.ReasonApprovalPending && strings.Contains(e.Message, fmt.Sprintf("the upgrade to version %q waits", version)) {
			count += int(max(e.Count, 1))
		}
	}
	return count
}

// TestApproval takes an extension of which each upgrade waits through its life: vectors A7,
// A1, A9 and A2.
//
//nolint:tparallel,paralleltest // one comes after the other
func TestApproval(t *testing.T) {
	t.Parallel()
	const name = "approved"
	all := operators(name, "1.0.0", "1.1.0", "1.2.0")
	publish(t, all[0])
	for _, operator := range all[1:] {
		pushBundle(t, operator, operator.Bundle())
	}
	extend(t, name, manual)
	t.Run("A7 the first installation does not wait", func(t *testing.T) {
		installed(t, name, "1.0.0")
		deploymentAvailable(t, name, name)
	})
	t.Run("A1 an upgrade waits", func(t *testing.T) {
		offer(t, name, "v2", all[:2]...)
		pending(t, name, "1.1.0")
		conditionContains(t, name, ocv1.TypeReady, `True ApprovalPending: "approved.v1.0.0" version "1.0.0" is installed, from catalog "approved"; the upgrade to version "1.1.0" waits for approval`)
		condition(t, name, ocv1.TypeProgressing, "True Succeeded: Desired state reached")
		eventually(t, "a summary of the plan", func(ctx context.Context) error {
			found := &ocv1.ClusterExtension{}
			if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: name}, found); err != nil {
				return err
			}
			for _, part := range []string{" to change", `change ConfigMap "settings" in namespace "approved"`, `the pods restart of Deployment "approved"`} {
				if is := found.Status.Pending; is == nil || !strings.Contains(is.PlanSummary, part) {
					return fmt.Errorf("pending is %+v, want %q in it", is, part)
				}
			}
			return nil
		})
		settingsAre(t, name, "1.0.0")
		remove(t, &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: name}})
		deploymentAvailable(t, name, name)
		installed(t, name, "1.0.0")
		settingsAre(t, name, "1.0.0")
	})
	t.Run("A9 tools go on", func(t *testing.T) {
		conditionContains(t, name, ocv1.TypeReady, "True ApprovalPending")
		found := &ocv1.ClusterExtension{}
		exists(t, found, "", name)
		object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(found)
		if err != nil {
			t.Fatal(err)
		}
		result, err := kstatus.Compute(&unstructured.Unstructured{Object: object})
		if err != nil || result.Status != kstatus.CurrentStatus {
			t.Errorf("kstatus says %+v, %v", result, err)
		}
		argo, err := argocd.HealthOf(t.Context(), &unstructured.Unstructured{Object: withKind(object)})
		if err != nil || argo.Status != argocd.Healthy || !strings.Contains(argo.Message, `version "1.1.0" waits for approval`) {
			t.Errorf("Argo CD says %+v, %v", argo, err)
		}
	})
	t.Run("A2 an approval is for one version", func(t *testing.T) {
		shown, err := theSuite.CommandOutput(t.Context(), "approve", name) // with no answer
		for _, part := range []string{"ACTION", "change ", "ConfigMap", "it would wait for:", `version "1.1.0" waits for approval`} {
			if err == nil || !strings.Contains(shown, part) {
				t.Errorf("before it asks, approve prints %s, %v; want %q", shown, err, part)
			}
		}
		told, err := theSuite.CommandOutput(t.Context(), "approve", name, "--yes")
		if err != nil || !strings.Contains(told, `pending:   "approved.v1.1.0" version "1.1.0"`) {
			t.Errorf("approve prints %s, %v", told, err)
		}
		installed(t, name, "1.1.0")
		settingsAre(t, name, "1.1.0")
		offer(t, name, "v3", all...)
		pending(t, name, "1.2.0")
		installed(t, name, "1.1.0")
		if count := approvalEvents(t, name, "1.1.0"); count == 0 {
			t.Error("no event told of 1.1.0")
		}
	})
}

func withKind(object map[string]any) map[string]any {
	object["apiVersion"], object["kind"] = ocv1.GroupVersion.String(), ocv1.ClusterExtensionKind
	return object
}

// skippingCatalog has the last version upgrade all others.
func skippingCatalog(operators ...testkit.Operator) fstest.MapFS {
	files := testkit.Catalog(registryHost, operators...)
	last := operators[len(operators)-1]
	var skipped []string
	for _, operator := range operators[:len(operators)-1] {
		skipped = append(skipped, operator.Name())
	}
	for _, file := range files {
		file.Data = bytes.Replace(file.Data, []byte("- name: "+last.Name()+"\n"), fmt.Appendf(nil, "- name: %s\n  skips: [%s]\n", last.Name(), strings.Join(skipped, ", ")), 1)
	}
	return files
}

// TestA3AnotherTargetAsksAgain has a newer version come before anybody has agreed, and then
// approves the older one.
func TestA3AnotherTargetAsksAgain(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		then int // how many of the versions the catalog keeps, besides the newest
	}{"reachable": {then: 2}, "unreachable": {then: 1}} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			name := "again-" + name
			all := operators(name, "1.0.0", "1.1.0", "1.2.0")
			for _, operator := range all {
				pushBundle(t, operator, operator.Bundle())
			}
			publishCatalog(t, name, testkit.Catalog(registryHost, all[:2]...))
			extend(t, name, version("1.0.0"))
			installed(t, name, "1.0.0")
			update(t, name, func(extension *ocv1.ClusterExtension) {
				version("")(extension)
				manual(extension)
			})
			first := pending(t, name, "1.1.0")

			offerFiles(t, name, "v2", skippingCatalog(append(all[:tc.then:tc.then], all[2])...))
			second := pending(t, name, "1.2.0")
			if second.Since.Before(&first.Since) {
				t.Errorf("1.1.0 waits since %s, and 1.2.0 since %s", first.Since, second.Since)
			}
			conditionContains(t, name, ocv1.TypeReady, `the upgrade to version "1.2.0" waits for approval`)
			eventually(t, "an event", func(context.Context) error {
				if count := approvalEvents(t, name, "1.2.0"); count != 1 {
					return fmt.Errorf("%d events tell of 1.2.0", count)
				}
				return nil
			})

			update(t, name, approved("1.1.0", ""))
			if tc.then == 2 {
				installed(t, name, "1.1.0")
				pending(t, name, "1.2.0")
				return
			}
			conditionContains(t, name, ocv1.TypeReady, `version "1.1.0" is approved, and no catalog leads to it`)
			pending(t, name, "1.2.0")
			installed(t, name, "1.0.0")
		})
	}
}

// TestA4AnotherImageIsRefused has the tag of an approved image move.
func TestA4AnotherImageIsRefused(t *testing.T) {
	t.Parallel()
	const name = "content"
	const nobodys = "sha256:1111111111111111111111111111111111111111111111111111111111111111"
	all := operators(name, "1.0.0", "1.1.0")
	publish(t, all...)
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	update(t, name, func(extension *ocv1.ClusterExtension) {
		version("")(extension)
		manual(extension)
		approved("1.1.0", nobodys)(extension)
	})
	// By tag, its digest is known when it was pulled.
	var was ocv1.PendingUpgrade
	eventually(t, "the digest", func(context.Context) error {
		if was = pending(t, name, "1.1.0"); was.Digest == "" {
			return errors.New("it is not known")
		}
		return nil
	})
	conditionContains(t, name, ocv1.TypeReady, fmt.Sprintf(`version "1.1.0" is approved with the image %s, and its image is %s`, nobodys, was.Digest))
	condition(t, name, ocv1.TypeProgressing, "True Succeeded: Desired state reached")

	moved := all[1]
	moved.ConfigMaps = append(moved.ConfigMaps, "added")
	pushBundle(t, moved, moved.Bundle())
	// What was pulled before may still come to be used, and is what was approved: that it is another
	// one has to be known first.
	update(t, name, approved("1.1.0", strings.ReplaceAll(nobodys, "1", "2")))
	var is ocv1.PendingUpgrade
	eventually(t, "another digest", func(context.Context) error {
		if is = pending(t, name, "1.1.0"); is.Digest == was.Digest || is.Digest == "" {
			return fmt.Errorf("it is %q", is.Digest)
		}
		return nil
	})
	update(t, name, approved("1.1.0", was.Digest))
	conditionContains(t, name, ocv1.TypeReady, fmt.Sprintf(`version "1.1.0" is approved with the image %s, and its image is %s`, was.Digest, is.Digest))
	settingsAre(t, name, "1.0.0")

	if told, err := theSuite.CommandOutput(t.Context(), "approve", name, "--yes"); err != nil || !strings.Contains(told, is.Digest) {
		t.Errorf("approve prints %s, %v", told, err)
	}
	installed(t, name, "1.1.0")
	exists(t, &corev1.ConfigMap{}, name, "added")
}

// TestA5ApprovalIsOfOneExtension has two in one namespace, of which one is approved.
func TestA5ApprovalIsOfOneExtension(t *testing.T) {
	t.Parallel()
	const one, other = "neighbour-a", "neighbour-b"
	for _, name := range []string{one, other} {
		all := operators(name, "1.0.0", "1.1.0")
		for i := range all {
			all[i].ConfigMaps = nil // which both would have in the namespace
		}
		publish(t, all...)
	}
	extend(t, one, version("1.0.0"), manual)
	extendOnly(t, other, version("1.0.0"), manual, func(extension *ocv1.ClusterExtension) {
		extension.Spec.Namespace = one
	})
	for _, name := range []string{one, other} {
		installed(t, name, "1.0.0")
		update(t, name, version(""))
		pending(t, name, "1.1.0")
	}
	update(t, one, approved("1.1.0", ""))
	installed(t, one, "1.1.0")
	stays(t, "the other one", 3*time.Second, func(ctx context.Context) error {
		found := &ocv1.ClusterExtension{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: other}, found); err != nil {
			return err
		}
		if found.Status.Install.Bundle.Version != "1.0.0" || found.Status.Pending == nil {
			return fmt.Errorf("status is %+v", found.Status)
		}
		return nil
	})
}

// TestA6OneApprovalAnswersBoth has the operator's rights grow where each upgrade waits.
func TestA6OneApprovalAnswersBoth(t *testing.T) {
	t.Parallel()
	const name = "both"
	publishEdited(t, name, map[string]string{"verbs: [get, list, watch]": "verbs: [get, list, watch, delete]"})
	extend(t, name, version("1.0.0"), manual, func(extension *ocv1.ClusterExtension) {
		extension.Spec.Install = &ocv1.ClusterExtensionInstallConfig{Preflight: &ocv1.PreflightConfig{
			Permissions: &ocv1.PermissionsPreflightConfig{Growth: ocv1.PermissionGrowthApprove},
		}}
	})
	installed(t, name, "1.0.0")
	update(t, name, version(""))
	pending(t, name, "1.1.0")
	conditionContains(t, name, ocv1.TypeReady, `the upgrade to version "1.1.0" waits for approval, as the operator would gain: ServiceAccount "both/both": Namespace:"" APIGroups:[both.test] Resources:[things] Verbs:[delete]`)
	condition(t, name, ocv1.TypeProgressing, "True Succeeded: Desired state reached")
	settingsAre(t, name, "1.0.0")
	if told, err := theSuite.CommandOutput(t.Context(), "approve", name, "--yes"); err != nil || !strings.Contains(told, "Verbs:[delete]") {
		t.Errorf("approve prints %s, %v", told, err)
	}
	installed(t, name, "1.1.0")
	eventTells(t, name, "Preflight", "the operator gains")
}

// TestA8WhoMayApprove has the policy bound, which asks for a right of its own. What it asks of
// whom in detail is tested in test/admission.
func TestA8WhoMayApprove(t *testing.T) {
	t.Parallel()
	const name = "guarded"
	publish(t, operators(name, "1.0.0", "1.1.0")...)
	extend(t, name, version("1.0.0"), manual)
	installed(t, name, "1.0.0")
	update(t, name, version(""))
	pending(t, name, "1.1.0")

	edit := rbacv1.PolicyRule{APIGroups: []string{ocv1.GroupVersion.Group}, Resources: []string{"clusterextensions"}, Verbs: []string{"get", "patch"}}
	approve := edit
	approve.Verbs = append(approve.Verbs, "approve")
	editor, approver := user(t, "guarded-editor", edit), user(t, "guarded-approver", approve)
	bindApprovals(t)
	eventually(t, "the policy", func(ctx context.Context) error {
		err := theSuite.Kubectl(ctx, "--kubeconfig", editor, "patch", "clusterextension", name, "--type=merge", "--dry-run=server",
			"-p", `{"spec": {"source": {"catalog": {"approvedVersion": "9.9.9"}}}}`)
		if err == nil || !strings.Contains(err.Error(), `user "guarded-editor" cannot approve resource "clusterextensions"`) {
			return fmt.Errorf("it does not hold yet: %w", err)
		}
		return nil
	})
	command(t, editor, "suspend", name)
	command(t, editor, "resume", name)
	pending(t, name, "1.1.0")
	if _, err := theSuite.LocalOutput(t.Context(), "approve", name, "--yes", "--kubeconfig", editor); err == nil {
		t.Error("the editor may approve")
	}
	command(t, approver, "approve", name, "--yes")
	installed(t, name, "1.1.0")
}

// bindApprovals applies the policy of approvals alone, until the test ends. The administrator
// may do everything, so that other tests do not notice.
func bindApprovals(t *testing.T) {
	t.Helper()
	const policy = "operator-controller-approvals"
	if err := theSuite.Kubectl(t.Context(), "apply", "-f", "../../config/admission/policy_approvals.yaml"); err != nil {
		t.Fatal(err)
	}
	meta := metav1.ObjectMeta{Name: policy}
	t.Cleanup(func() { remove(t, &admissionregistrationv1.ValidatingAdmissionPolicy{ObjectMeta: meta}) })
	binding := &admissionregistrationv1.ValidatingAdmissionPolicyBinding{ObjectMeta: meta, Spec: admissionregistrationv1.ValidatingAdmissionPolicyBindingSpec{
		PolicyName: policy, ValidationActions: []admissionregistrationv1.ValidationAction{admissionregistrationv1.Deny},
	}}
	if err := theSuite.Admin.Create(t.Context(), binding); err != nil && !apierrors.IsAlreadyExists(err) {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, binding) })
}
