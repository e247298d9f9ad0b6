package applier_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	apiextensionsv1 "k8s.io/apiextensions-apiserver/pkg/apis/apiextensions/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
)

// definition is a CustomResourceDefinition with a short name, and a status.
func definition(t *testing.T, group, kind, short string) *unstructured.Unstructured {
	t.Helper()
	plural := strings.ToLower(kind) + "s"
	made := &unstructured.Unstructured{}
	if err := yaml.Unmarshal(fmt.Appendf(nil, `
apiVersion: apiextensions.k8s.io/v1
kind: CustomResourceDefinition
metadata: {name: %s.%s}
spec:
  group: %[2]s
  scope: Namespaced
  names: {kind: %[3]s, plural: %[1]s, shortNames: [%[4]s]}
  versions:
  - name: v1
    served: true
    storage: true
    subresources: {status: {}}
    schema: {openAPIV3Schema: {type: object, x-kubernetes-preserve-unknown-fields: true}}
`, plural, group, kind, short), &made.Object); err != nil {
		t.Fatal(err)
	}
	return made
}

// waitWorkload does what the controller does after each change, until the object is as the function wants it.
func (f *fixture) waitWorkload(t *testing.T, kind string, is func(health.Workload) bool) health.Workload {
	t.Helper()
	for {
		for _, workload := range f.workloads(t) {
			if workload.Key.Kind == kind && is(workload) {
				return workload
			}
		}
		f.waitForChange(t)
		f.repair(t)
		for range 2 { // a status is read a moment after the change
			f.applier.Diagnose(t.Context(), f.owner)
			f.later.Add(int64(2 * time.Second))
		}
	}
}

// TestDefinitionThatIsNotEstablished is F2: a name is taken until the other CustomResourceDefinition is deleted.
func TestDefinitionThatIsNotEstablished(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "names")
	other := definition(t, "names.test", "Other", "nm")
	create(t, other)
	f.apply(t, "1.0.0", definition(t, "names.test", "Thing", "nm"))
	down := f.waitWorkload(t, "CustomResourceDefinition", func(w health.Workload) bool {
		return w.Available == metav1.ConditionFalse && !w.RollingOut
	})
	if want := `its condition NamesAccepted is False: ShortNamesConflict: "nm" is already in use`; !strings.HasPrefix(down.Reason, want) {
		t.Errorf("the reason is %q, want %q", down.Reason, want)
	}
	for range 2 { // it is looked for a while after the problem was seen
		f.applier.Diagnose(t.Context(), f.owner)
		f.later.Add(int64(10 * time.Second))
	}
	if reason, want := f.workloads(t)[0].Reason, `in use: CustomResourceDefinition "others.names.test" has it`; !strings.HasSuffix(reason, want) {
		t.Errorf("the reason is %q, want %q at its end", reason, want)
	}
	f.requests.take()
	if err := admin.Delete(t.Context(), other); err != nil {
		t.Fatal(err)
	}
	f.waitWorkload(t, "CustomResourceDefinition", func(w health.Workload) bool { return w.Available == metav1.ConditionTrue })
	sent := f.requests.take()
	for _, request := range sent {
		if strings.HasPrefix(request, "P") {
			t.Errorf("a write was needed: %s", request)
		}
	}
	if reads := countsOf(sent)["GET content"]; reads == 0 || reads > 5 {
		t.Errorf("%d reads, want one for each change of the status", reads)
	}
	f.repair(t)
	if sent := f.requests.take(); len(sent) > 0 {
		t.Errorf("at rest: %v", sent)
	}
}

// TestCustomResourceThatIsNotReady is F1.
func TestCustomResourceThatIsNotReady(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "unready")
	create(t, definition(t, "unready.test", "Gauge", "gg"))
	crd := &apiextensionsv1.CustomResourceDefinition{}
	waitFor(t, func(ctx context.Context) (bool, error) {
		err := admin.Get(ctx, client.ObjectKey{Name: "gauges.unready.test"}, crd)
		return slices.ContainsFunc(crd.Status.Conditions, func(c apiextensionsv1.CustomResourceDefinitionCondition) bool {
			return c.Type == apiextensionsv1.Established && c.Status == apiextensionsv1.ConditionTrue
		}), err
	})
	gauge := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "unready.test/v1", "kind": "Gauge", "metadata": map[string]any{"name": "g"},
	}}
	f.apply(t, "1.0.0", gauge)
	if found := f.workloads(t); len(found) > 0 {
		t.Errorf("without conditions it counts: %+v", found)
	}
	live := gauge.DeepCopy()
	live.SetNamespace(f.owner.Namespace)
	say := func(status metav1.ConditionStatus) {
		t.Helper()
		patch, err := json.Marshal(map[string]any{"status": map[string]any{"conditions": []any{
			map[string]any{"type": "Ready", "status": status, "reason": "Sensor", "message": "no signal"},
		}}})
		if err != nil {
			t.Fatal(err)
		}
		if err := admin.Status().Patch(t.Context(), live.DeepCopy(), client.RawPatch(types.MergePatchType, patch)); err != nil {
			t.Fatal(err)
		}
	}
	say(metav1.ConditionFalse)
	down := f.waitWorkload(t, "Gauge", func(w health.Workload) bool { return w.Available == metav1.ConditionFalse })
	if want := "its condition Ready is False: Sensor: no signal"; down.Reason != want {
		t.Errorf("the reason is %q, want %q", down.Reason, want)
	}
	say(metav1.ConditionTrue)
	f.waitWorkload(t, "Gauge", func(w health.Workload) bool { return w.Available == metav1.ConditionTrue })
}
