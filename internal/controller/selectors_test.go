package controller

import (
	"context"
	"strings"
	"testing"
	"testing/fstest"

	"github.com/google/go-cmp/cmp"
	appsv1 "k8s.io/api/apps/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/bundle"
)

const serving = `apiVersion: operators.coreos.com/v1alpha1
kind: ClusterServiceVersion
metadata: {name: p.v1.0.0}
spec:
  version: 1.0.0
  installModes: [{type: AllNamespaces, supported: true}]
  webhookdefinitions:
  - {type: ValidatingAdmissionWebhook, generateName: v.p.test, deploymentName: p, containerPort: 443, admissionReviewVersions: [v1], sideEffects: None, rules: []}
  install:
    strategy: deployment
    spec:
      deployments:
      - name: p
        spec:
          selector: {matchLabels: {control-plane: controller-manager}}
          template:
            metadata: {labels: {control-plane: controller-manager}}
            spec: {containers: [{name: manager, image: registry.test/p}]}
`

// sharingWorld returns a world with an extension whose bundle serves webhooks. shared is the result of
// SharedPods, and asked counts the calls.
func sharingWorld(t *testing.T, shared *[]bundle.SharedService, asked *int) *world {
	t.Helper()
	w := sampleWorld(t)
	w.files = fstest.MapFS{
		"metadata/annotations.yaml": {Data: []byte("annotations: {operators.operatorframework.io.bundle.package.v1: p}")},
		"manifests/csv.yaml":        {Data: []byte(serving)},
	}
	w.workloads = []health.Workload{{Key: object.Key{GroupKind: health.DeploymentKind, Namespace: "ns", Name: "p"}, Available: metav1.ConditionTrue}}
	w.reconciler.SharedPods = func(context.Context, object.Owner, []*unstructured.Unstructured) ([]bundle.SharedService, error) {
		*asked++
		return *shared, nil
	}
	return w
}

// neighbour is another extension of the namespace with a bundle installed.
func (w *world) neighbour(t *testing.T, name string) {
	t.Helper()
	ext := sampleExtension()
	ext.Name, ext.UID = name, "other"
	if err := w.client.Create(t.Context(), ext); err != nil {
		t.Fatal(err)
	}
	ext.Status.Install = &ocv1.ClusterExtensionInstallStatus{Bundle: ocv1.BundleMetadata{Name: name + ".v1.0.0", Version: "1.0.0"}}
	if err := w.client.Status().Update(t.Context(), ext); err != nil {
		t.Fatal(err)
	}
}

// selected returns the selection of what is installed, by the objects that were applied.
func (w *world) selected(t *testing.T) bundle.Selection {
	t.Helper()
	got := bundle.Selects(w.recorded.Objects)
	if recorded := w.installation.Installed.Selection; recorded != got {
		t.Errorf("recorded is %q, and objects have %q", recorded, got)
	}
	return got
}

func (w *world) passes(t *testing.T, count int) {
	t.Helper()
	for range count {
		if _, err := w.reconcile(t); err != nil {
			t.Fatal(err)
		}
	}
}

// TestF29NewNeighbour is F29: pods get a label when another operator comes, the Service selects by it
// when the rollout is complete, and that is all.
func TestF29NewNeighbour(t *testing.T) {
	t.Parallel()
	var shared []bundle.SharedService
	asked := 0
	w := sharingWorld(t, &shared, &asked)
	w.passes(t, 2)
	if got := w.selected(t); got != bundle.SelectAuthored || asked != 1 {
		t.Fatalf("alone: %q, asked %d times", got, asked)
	}
	shared = []bundle.SharedService{{Service: "p-service", Deployment: "p", Other: "q"}}
	w.neighbour(t, "q")
	w.workloads[0].RollingOut = true
	w.passes(t, 1)
	if got := w.selected(t); got != bundle.SelectLabelled {
		t.Fatalf("with a neighbour: %q", got)
	}
	before := asked
	w.passes(t, 2)
	if got := w.selected(t); got != bundle.SelectLabelled || asked != before {
		t.Fatalf("while pods without the label serve: %q, asked %d times", got, asked-before)
	}
	w.workloads[0].RollingOut = false
	w.passes(t, 1)
	if got := w.selected(t); got != bundle.SelectOwn {
		t.Fatalf("when the rollout is complete: %q", got)
	}
	w.take()
	shared = nil
	w.passes(t, 2)
	if diff := cmp.Diff([]string{"repair", "repair"}, w.take()); diff != "" || asked != before {
		t.Errorf("at rest, asked %d times (-want +got)\n%s", asked-before, diff)
	}
}

// TestF29FirstInstall is F29: a bundle that is installed beside pods of another operator selects its
// own from the beginning.
func TestF29FirstInstall(t *testing.T) {
	t.Parallel()
	shared := []bundle.SharedService{{Service: "p-service", Deployment: "p", Other: "q"}}
	asked := 0
	w := sharingWorld(t, &shared, &asked)
	w.passes(t, 3)
	if got := w.selected(t); got != bundle.SelectOwn || asked != 1 {
		t.Errorf("got %q, asked %d times", got, asked)
	}
	for _, one := range w.recorded.Objects {
		selector, _, _ := unstructured.NestedStringMap(one.Object, "spec", "selector")
		if one.GetKind() == "Service" && selector[bundle.LabelWorkload] != "p" {
			t.Errorf("the Service selects %v", selector)
		}
		if one.GroupVersionKind() == appsv1.SchemeGroupVersion.WithKind("Deployment") && len(selector) > 1 {
			t.Errorf("the Deployment selects %v", selector)
		}
	}
}

// TestF29Fixed is F29: where the label is excluded, Ready warns and nothing is applied again.
func TestF29Fixed(t *testing.T) {
	t.Parallel()
	var shared []bundle.SharedService
	asked := 0
	w := sharingWorld(t, &shared, &asked)
	w.passes(t, 2)
	shared = []bundle.SharedService{{Service: "p-service", Deployment: "p", Other: "q-manager", Fixed: true}}
	w.neighbour(t, "q")
	w.take()
	w.passes(t, 2)
	if diff := cmp.Diff([]string{"repair", "repair"}, w.take()); diff != "" || asked != 2 {
		t.Errorf("asked %d times (-want +got)\n%s", asked, diff)
	}
	ready := meta.FindStatusCondition(w.extension(t).Status.Conditions, ocv1.TypeReady).Message
	if want := `Service "p-service" can send webhook requests to pods of Deployment "q-manager"`; !strings.Contains(ready, want) {
		t.Errorf("Ready: %s", ready)
	}
}

// TestF29Interrupted is F29: a process that starts again goes on where it was, and a failed write of the
// Service is repeated.
func TestF29Interrupted(t *testing.T) {
	t.Parallel()
	shared := []bundle.SharedService{{Service: "p-service", Deployment: "p", Other: "q"}}
	asked := 0
	w := sharingWorld(t, &shared, &asked)
	w.passes(t, 1)
	w.installation.Installed.Selection = bundle.SelectLabelled
	w.unseen = true // a process that has just started
	w.passes(t, 1)
	if got := w.installation.Installed.Selection; got != bundle.SelectLabelled {
		t.Fatalf("unseen: %q", got)
	}
	w.unseen, w.applyErr = false, context.DeadlineExceeded
	if _, err := w.reconcile(t); err == nil {
		w.take()
	}
	w.applyErr = nil
	w.passes(t, 1)
	if got := w.selected(t); got != bundle.SelectOwn {
		t.Errorf("after an interruption: %q", got)
	}
}
