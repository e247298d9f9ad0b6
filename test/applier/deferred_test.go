package applier_test

import (
	"context"
	"net/http"
	"strings"
	"testing"
	"time"

	admissionregistrationv1 "k8s.io/api/admissionregistration/v1"
	corev1 "k8s.io/api/core/v1"
	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/util/wait"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// servedBy are the objects of a server: a Service, and a workload of a kind.
func servedBy(t *testing.T, kind, image string) []*unstructured.Unstructured {
	t.Helper()
	extra := ""
	if kind == "StatefulSet" {
		extra = "serviceName: op, "
	}
	return manifests(t, `
apiVersion: v1
kind: Service
metadata: {name: op}
spec: {selector: {app: op}, ports: [{port: 443, targetPort: 9443}]}
---
apiVersion: apps/v1
kind: `+kind+`
metadata: {name: op}
spec: {`+extra+`selector: {matchLabels: {app: op}}, template: {metadata: {labels: {app: op}}, spec: {containers: [{name: c, image: "`+image+`"}]}}}
`)
}

// onPods is a webhook configuration about the pods of its own server.
func (f *fixture) onPods(t *testing.T, kind string) *unstructured.Unstructured {
	t.Helper()
	name := f.owner.Name + ".hooks.test"
	t.Cleanup(func() {
		for _, made := range []client.Object{&admissionregistrationv1.MutatingWebhookConfiguration{}, &admissionregistrationv1.ValidatingWebhookConfiguration{}} {
			made.SetName(name)
			if err := client.IgnoreNotFound(admin.Delete(context.Background(), made)); err != nil {
				t.Error(err)
			}
		}
	})
	return manifests(t, `
apiVersion: admissionregistration.k8s.io/v1
kind: `+kind+`
metadata: {name: `+name+`}
webhooks:
- name: `+name+`
  admissionReviewVersions: [v1]
  sideEffects: None
  failurePolicy: Fail
  timeoutSeconds: 2
  clientConfig: {service: {name: op, namespace: `+f.owner.Namespace+`}}
  namespaceSelector: {matchLabels: {kubernetes.io/metadata.name: `+f.owner.Namespace+`}}
  rules: [{apiGroups: [""], apiVersions: [v1], operations: [CREATE], resources: [pods]}]
`)[0]
}

// exists reports whether there is such an object on the cluster.
func exists(t *testing.T, of *unstructured.Unstructured, namespace string) bool {
	t.Helper()
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(of.GroupVersionKind())
	err := admin.Get(t.Context(), client.ObjectKey{Namespace: namespace, Name: of.GetName()}, found)
	if client.IgnoreNotFound(err) != nil {
		t.Fatal(err)
	}
	return err == nil
}

// repairUntil repairs whenever a watch reports something, until a condition is true.
func (f *fixture) repairUntil(t *testing.T, what string, holds func() bool) {
	t.Helper()
	deadline := time.After(patience)
	for !holds() {
		select {
		case <-f.changed:
			f.repair(t)
		case <-deadline:
			t.Fatalf("%s: not in time, the workloads are %+v", what, f.workloads(t))
		}
	}
}

// TestWebhookOfAnotherName is F23: an upgrade creates a webhook configuration at once if it replaces another one of the same
// server, so that there is always one of them.
func TestWebhookOfAnotherName(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "webhook-renamed")
	old := f.onPods(t, "MutatingWebhookConfiguration")
	server := servedBy(t, "Deployment", "r.test/op:1")
	stop := f.runPods(t)
	f.apply(t, "1.0.0", append(server, old)...)
	f.repairUntil(t, "created", func() bool { return exists(t, old, "") })
	stop()

	renamed := old.DeepCopy()
	renamed.SetName("renamed-" + old.GetName())
	t.Cleanup(func() {
		if err := client.IgnoreNotFound(admin.Delete(context.Background(), renamed.DeepCopy())); err != nil {
			t.Error(err)
		}
	})
	f.apply(t, "1.0.1", append(servedBy(t, "Deployment", "r.test/op:2"), renamed)...)
	if !exists(t, renamed, "") {
		t.Error("there is no webhook until a pod of the new version is ready")
	}
	if exists(t, old, "") {
		t.Error("the old webhook is not deleted")
	}
}

// TestWebhooksOnPods is F23: a webhook configuration is created when a pod of its server is ready, at the first
// install, after a restart, and after a user has deleted it.
func TestWebhooksOnPods(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ configuration, server string }{
		"mutating":      {"MutatingWebhookConfiguration", "Deployment"},
		"validating":    {"ValidatingWebhookConfiguration", "Deployment"},
		"a StatefulSet": {"MutatingWebhookConfiguration", "StatefulSet"},
	} {
		t.Run("F23: "+name, func(t *testing.T) {
			t.Parallel()
			f := newFixture(t, "on-pods-"+strings.ToLower(tc.configuration[:3]+tc.server))
			webhook := f.onPods(t, tc.configuration)
			content := append(servedBy(t, tc.server, "r.test/op:1"), webhook)
			f.apply(t, "1.0.0", content...)
			if exists(t, webhook, "") {
				t.Fatal("the webhook is created before its server")
			}
			f.repairUntil(t, "a pod that is not ready", func() bool { return f.countPods(t) > 0 })
			f.settle(t)
			f.restart(t)
			f.repair(t)
			f.settle(t)
			if exists(t, webhook, "") {
				t.Fatal("a repair creates the webhook before a pod is ready")
			}
			waits := f.waiting(t, webhook.GetKind())
			if !strings.Contains(waits, tc.server+` "op"`) {
				t.Errorf("of the webhook is reported %q", waits)
			}
			f.repair(t)
			if requests := f.requests.take(); len(requests) > 0 {
				t.Errorf("while it waits it asks for %v", requests)
			}

			stop := f.runPods(t)
			f.repairUntil(t, "created", func() bool { return exists(t, webhook, "") })
			f.settle(t)
			if waits := f.waiting(t, webhook.GetKind()); waits != "" {
				t.Errorf("of a webhook that is called is reported %q", waits)
			}
			f.apply(t, "1.0.1", content...)
			f.restart(t)
			f.repair(t)
			if writes := writesIn(f.requests.take()); len(writes) > 0 {
				t.Errorf("a new process writes %v", writes)
			}

			// The pod is lost, and the webhook prevents its successor. Deleting the webhook is the way out.
			stop()
			f.deletePods(t)
			f.repairUntil(t, "not served", func() bool { return !f.serves(t) })
			if err := admin.Delete(t.Context(), named(webhook)); err != nil {
				t.Fatal(err)
			}
			f.repairUntil(t, "deleted", func() bool { return f.waiting(t, webhook.GetKind()) != "" })
			f.settle(t)
			if exists(t, webhook, "") {
				t.Fatal("the deletion is undone while nothing serves the webhook")
			}
			f.runPods(t)
			f.repairUntil(t, "created again", func() bool { return exists(t, webhook, "") })
		})
	}
}

// TestWebhooksOfOthers is F23: a webhook that another extension serves, or a server outside of the cluster, does
// not wait.
func TestWebhooksOfOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "webhook-of-others")
	webhook := f.onPods(t, "MutatingWebhookConfiguration")
	f.apply(t, "1.0.0", webhook)
	if !exists(t, webhook, "") {
		t.Error("the webhook waits for a server that is not of the release")
	}
}

// TestWebhooksThatAreCompleted (F23): a webhook exists from the start if a program of the bundle sets its certificate, unless
// the rules of the webhook include pods.
func TestWebhooksThatAreCompleted(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "webhook-completed")
	webhook := f.onPods(t, "ValidatingWebhookConfiguration")
	webhook.Object["webhooks"].([]any)[0].(map[string]any)["rules"].([]any)[0].(map[string]any)["resources"] = []any{"bindings"}
	f.apply(t, "1.0.0", append(servedBy(t, "Deployment", "r.test/op:1"), webhook)...)
	if !exists(t, webhook, "") {
		t.Error("the hook that sets the certificate finds no webhook configuration")
	}
}

// TestDeathBeforeAWebhook is F23: the process dies at any write, and the webhook is created all the same.
func TestDeathBeforeAWebhook(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "webhook-death")
	webhook := f.onPods(t, "MutatingWebhookConfiguration")
	content := append(servedBy(t, "Deployment", "r.test/op:1"), webhook)
	f.requests.setStop(func(req *http.Request) error {
		if isWrite(req) && strings.Contains(req.URL.Path, "webhookconfigurations") {
			return errDied
		}
		return nil
	})
	f.runPods(t)
	f.apply(t, "1.0.0", content...)
	err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
		_, err := f.applier.Repair(ctx, f.owner)
		return err != nil, nil
	})
	if err != nil {
		t.Fatal("nothing has tried to create the webhook")
	}
	f.restart(t)
	f.repair(t)
	f.repairUntil(t, "created", func() bool { return exists(t, webhook, "") })
}

func named(of *unstructured.Unstructured) *unstructured.Unstructured {
	found := &unstructured.Unstructured{}
	found.SetGroupVersionKind(of.GroupVersionKind())
	found.SetName(of.GetName())
	return found
}

// waiting returns what is reported of an object of a kind that waits for its server; empty if none does.
func (f *fixture) waiting(t *testing.T, kind string) string {
	t.Helper()
	for _, workload := range f.workloads(t) {
		if workload.Key.Kind == kind {
			return workload.Reason
		}
	}
	return ""
}

func (f *fixture) serves(t *testing.T) bool {
	t.Helper()
	for _, workload := range f.workloads(t) {
		if workload.Key.Name == "op" {
			return workload.Serves()
		}
	}
	return false
}

func (f *fixture) countPods(t *testing.T) int {
	t.Helper()
	pods := &corev1.PodList{}
	if err := admin.List(t.Context(), pods, client.InNamespace(f.owner.Namespace)); err != nil {
		t.Fatal(err)
	}
	return len(pods.Items)
}

func (f *fixture) deletePods(t *testing.T) {
	t.Helper()
	now := client.GracePeriodSeconds(0)
	if err := admin.DeleteAllOf(t.Context(), &corev1.Pod{}, client.InNamespace(f.owner.Namespace), now); err != nil {
		t.Fatal(err)
	}
}

// clocks returns a CRD with one version, or with two versions if second is the schema of a field.
func clocks(t *testing.T, group, storage, conversion string, second string) *unstructured.Unstructured {
	t.Helper()
	text := `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: clocks.` + group + `, annotations: {cert-manager.io/inject-ca-from: ns/op}}
spec:
  group: ` + group + `
  scope: Namespaced
  names: {kind: Clock, plural: clocks, singular: clock, listKind: ClockList}
  ` + conversion + `
  versions:
  - {name: v1, served: true, storage: ` + boolText(storage == "v1") + `, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {size: {type: integer}}}}}}}
`
	if second != "" {
		text += `  - {name: v2, served: true, storage: ` + boolText(storage == "v2") + `, schema: {openAPIV3Schema: {type: object, properties: {spec: {type: object, properties: {count: ` + second + `}}}}}}
`
	}
	return manifests(t, text)[0]
}

func boolText(value bool) string {
	if value {
		return "true"
	}
	return "false"
}

func (f *fixture) definition(t *testing.T, name string) *apiextensionsv1.CustomResourceDefinition {
	t.Helper()
	found := &apiextensionsv1.CustomResourceDefinition{}
	if err := admin.Get(t.Context(), client.ObjectKey{Name: name}, found); err != nil {
		t.Fatal(err)
	}
	return found
}

// TestConversionComesLast is F21: an upgrade that brings a conversion webhook and another storage version switches to
// both when a pod of the new revision is ready. Until then users write objects as before, and every way is open:
// a version that fixes the new one, and the rollback.
func TestConversionComesLast(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "conversion-last")
	group := f.owner.Namespace + ".test"
	name := "clocks." + group
	t.Cleanup(func() { f.removeDefinition(t, name) })
	conversion := "conversion: {strategy: Webhook, webhook: {conversionReviewVersions: [v1], clientConfig: {service: {name: op, namespace: " +
		f.owner.Namespace + ", path: /convert}}}}"
	with := func(crd *unstructured.Unstructured, image string) []*unstructured.Unstructured {
		return append(servedBy(t, "Deployment", image), crd)
	}
	written := 0
	writable := func(when string) {
		t.Helper()
		written++
		made := &unstructured.Unstructured{Object: map[string]any{"spec": map[string]any{"size": int64(200)}}}
		made.SetAPIVersion(group + "/v1")
		made.SetKind("Clock")
		made.SetNamespace(f.owner.Namespace)
		made.SetName("c" + strings.Repeat("x", written))
		var last error
		err := wait.PollUntilContextTimeout(t.Context(), 50*time.Millisecond, patience, true, func(ctx context.Context) (bool, error) {
			last = admin.Create(ctx, made)
			return last == nil, nil
		})
		if err != nil {
			t.Fatalf("%s: no object can be written: %v", when, last)
		}
	}
	isSwitched := func() bool {
		crd := f.definition(t, name)
		return crd.Spec.Conversion.Strategy == apiextensionsv1.WebhookConverter && len(crd.Spec.Versions) == 2 && crd.Spec.Versions[1].Storage &&
			crd.Spec.Versions[1].Served
	}

	stop := f.runPods(t)
	f.apply(t, "1.0.0", with(clocks(t, group, "v1", "", ""), "r.test/op:1")...)
	f.repairUntil(t, "served", func() bool { return f.serves(t) })
	writable("before")
	stop()

	f.apply(t, "2.0.0", with(clocks(t, group, "v2", conversion, "{type: integer}"), "r.test/op:2")...)
	f.settle(t)
	crd := f.definition(t, name)
	if crd.Spec.Conversion.Strategy != apiextensionsv1.NoneConverter || !crd.Spec.Versions[0].Storage || crd.Spec.Versions[1].Served {
		t.Errorf("before its pods are ready, the CRD is %+v", crd.Spec)
	}
	writable("during the upgrade")
	if waits := f.waiting(t, object.DefinitionKind.Kind); !strings.Contains(waits, `Deployment "op"`) {
		t.Errorf("of the conversion is reported %q", waits)
	}
	f.restart(t)
	f.repair(t)
	if waits := f.waiting(t, object.DefinitionKind.Kind); !strings.Contains(waits, `Deployment "op"`) {
		t.Errorf("after a restart, of the conversion is reported %q", waits)
	}
	f.settle(t)
	f.repair(t)
	if requests := f.requests.take(); len(requests) > 0 {
		t.Errorf("while it waits it asks for %v", requests)
	}

	f.apply(t, "2.0.1", with(clocks(t, group, "v2", conversion, "{type: integer, maximum: 100}"), "r.test/op:2.0.1")...)
	writable("after a version that fixes it")
	f.apply(t, "1.0.0", with(clocks(t, group, "v1", "", ""), "r.test/op:1")...)
	writable("after the rollback")

	f.apply(t, "2.0.2", with(clocks(t, group, "v2", conversion, "{type: integer}"), "r.test/op:2.0.2")...)
	f.runPods(t)
	f.repairUntil(t, "switched", isSwitched)
	f.settle(t)
	if waits := f.waiting(t, object.DefinitionKind.Kind); waits != "" {
		t.Errorf("of the conversion is reported %q", waits)
	}
	f.restart(t)
	f.repair(t)
	if writes := writesIn(f.requests.take()); len(writes) > 0 {
		t.Errorf("a new process writes %v", writes)
	}

	// A user switches the conversion off: it is restored at once, since objects of both versions may be stored.
	f.settle(t)
	off := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`))
	if err := admin.Patch(t.Context(), f.definition(t, name), off); err != nil {
		t.Fatal(err)
	}
	f.repairUntil(t, "restored", isSwitched)
}

// removeDefinition deletes a CRD whose conversion webhook nothing serves.
func (f *fixture) removeDefinition(t *testing.T, name string) {
	t.Helper()
	crd := &apiextensionsv1.CustomResourceDefinition{ObjectMeta: metav1.ObjectMeta{Name: name}}
	off := client.RawPatch("application/merge-patch+json", []byte(`{"spec":{"conversion":{"strategy":"None","webhook":null}}}`))
	if err := admin.Patch(context.Background(), crd, off); err != nil && !apierrors.IsNotFound(err) {
		t.Error(err)
	}
	if err := client.IgnoreNotFound(admin.Delete(context.Background(), crd)); err != nil {
		t.Error(err)
	}
}
