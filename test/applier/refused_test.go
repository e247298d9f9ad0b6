package applier_test

import (
	"strings"
	"testing"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
)

const worker = `{apiVersion: apps/v1, kind: Deployment, metadata: {name: w, annotations: {version: "VERSION"}}, spec: {
  selector: {matchLabels: {app: w}},
  template: {metadata: {labels: {app: w}}, spec: {containers: [{name: c, image: "registry.test/x:1"}]}}}}`

// TestRefusedObjectsStopNothingElse is F11: a quota refuses a ConfigMap that was deleted. All other objects are repaired, an
// upgrade that does not touch it goes on, and the repair after that reports it.
func TestRefusedObjectsStopNothingElse(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "refused")
	content := func(version string) []*unstructured.Unstructured {
		return []*unstructured.Unstructured{configMap("a", "1"), parse(t, strings.Replace(worker, "VERSION", version, 1))}
	}
	f.apply(t, "1.0.0", content("1")...)
	f.settle(t)
	quota := &corev1.ResourceQuota{ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: "q"}}
	quota.Spec.Hard = corev1.ResourceList{"count/configmaps": resource.MustParse("0")}
	create(t, quota)
	counted := client.RawPatch(types.MergePatchType, []byte(`{"status": {"hard": {"count/configmaps": "0"}, "used": {"count/configmaps": "1"}}}`))
	if err := admin.Status().Patch(t.Context(), quota, counted); err != nil { // no controller counts here
		t.Fatal(err)
	}
	deployment := func() (*appsv1.Deployment, error) {
		found := &appsv1.Deployment{}
		return found, admin.Get(t.Context(), client.ObjectKey{Namespace: f.owner.Namespace, Name: "w"}, found)
	}
	gone := &appsv1.Deployment{ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: "w"}}
	for _, object := range []client.Object{f.live(t, "a"), gone} {
		if err := admin.Delete(t.Context(), object); err != nil {
			t.Fatal(err)
		}
	}
	refused := func() {
		t.Helper()
		for {
			_, err := f.applier.Repair(t.Context(), f.owner)
			if err == nil {
				f.waitForChange(t)
				continue
			}
			if !strings.Contains(err.Error(), `ConfigMap "a"`) || !strings.Contains(err.Error(), "exceeded quota") {
				t.Fatalf("the repair says %v", err)
			}
			if _, err := deployment(); err == nil {
				return
			}
			f.waitForChange(t)
		}
	}
	refused()

	result := f.apply(t, "1.1.0", content("2")...)
	if found, err := deployment(); err != nil || found.Annotations["version"] != "2" {
		t.Errorf("the upgrade has not changed the Deployment: %v", err)
	}
	if notes := strings.Join(result.Notes, "\n"); !strings.Contains(notes, `ConfigMap "a"`) {
		t.Errorf("the upgrade notes %q", notes)
	}
	refused()

	if err := admin.Delete(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	for f.live(t, "a") == nil {
		_, _ = f.applier.Repair(t.Context(), f.owner) // until the API server has seen that there is no quota
	}
	f.settle(t)
	if sent := f.requests.take(); len(sent) > 0 {
		t.Errorf("at rest %v was sent", sent)
	}
}
