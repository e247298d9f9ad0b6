package applier_test

import (
	"strings"
	"testing"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier"
)

func deployment(t *testing.T) *unstructured.Unstructured {
	t.Helper()
	object := &unstructured.Unstructured{}
	if err := yaml.Unmarshal([]byte(`
apiVersion: apps/v1
kind: Deployment
metadata: {name: d}
spec:
  replicas: 1
  selector: {matchLabels: {app: d}}
  template:
    metadata: {labels: {app: d}}
    spec: {containers: [{name: c, image: registry.test/c}]}
`), &object.Object); err != nil {
		t.Fatal(err)
	}
	return object
}

// TestWorkloadsAreFollowed has a Deployment whose pods find no node.
func TestWorkloadsAreFollowed(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "workloads")
	f.apply(t, "1.0.0", deployment(t))
	workloads := f.workloads(t)
	f.requests.take()
	for !settledAs(workloads, metav1.ConditionFalse) || workloads[0].Reason != "0 of 1 replicas are available" {
		f.waitForChange(t)
		f.repair(t)
		workloads = f.workloads(t)
	}
	for _, request := range f.requests.take() {
		if strings.Contains(request, "deployments/d") {
			t.Errorf("%s: the watch says it all", request)
		}
	}

	f.restart(t)
	if _, known := f.applier.Workloads(f.owner); known {
		t.Error("the workloads are known before they were looked at")
	}
	f.repair(t)
	if workloads := f.workloads(t); !settledAs(workloads, metav1.ConditionFalse) {
		t.Errorf("after a restart the workloads are %+v", workloads)
	}
}

func settledAs(workloads []applier.Workload, available metav1.ConditionStatus) bool {
	return len(workloads) == 1 && workloads[0].Available == available
}

func (f *fixture) workloads(t *testing.T) []applier.Workload {
	t.Helper()
	workloads, known := f.applier.Workloads(f.owner)
	if !known {
		t.Fatal("the workloads are not known")
	}
	return workloads
}

func (f *fixture) repair(t *testing.T) applier.Result {
	t.Helper()
	result, err := f.applier.Repair(t.Context(), f.owner)
	if err != nil {
		t.Fatal(err)
	}
	return result
}
