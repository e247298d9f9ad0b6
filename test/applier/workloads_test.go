package applier_test

import (
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/yaml"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
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
	f.requests.take()
	f.waitUnavailable(t)
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

// TestWorkloadThatIsGone has a Deployment deleted that nobody can put back.
func TestWorkloadThatIsGone(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "workload-gone")
	f.apply(t, "1.0.0", deployment(t))
	f.waitUnavailable(t) // from here on a watch runs, which lasts when the right to open one goes
	f.disempower(t)
	f.deleteDeployment(t)
	f.waitGone(t)
	if _, err := f.applier.Repair(t.Context(), f.owner); err == nil {
		t.Error("it was put back without the right to do so")
	}
	want := health.Workload{Available: metav1.ConditionFalse, Reason: "it does not exist"}
	if got := f.workloads(t)[0]; got.Available != want.Available || got.Reason != want.Reason || got.RollingOut || got.Stuck {
		t.Errorf("the workload is %+v, want %+v", got, want)
	}
}

// TestWorkloadThatCannotBeSeen takes all rights from a ServiceAccount that could not
// watch before either.
func TestWorkloadThatCannotBeSeen(t *testing.T) {
	t.Parallel()
	f := newPowerlessFixture(t, "workload-unseen")
	create(t, &rbacv1.ClusterRole{
		ObjectMeta: metav1.ObjectMeta{Name: f.owner.Namespace},
		Rules:      []rbacv1.PolicyRule{{Verbs: []string{"get", "create", "update", "patch", "delete"}, APIGroups: []string{"*"}, Resources: []string{"*"}}},
	})
	create(t, &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.owner.Namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.owner.Namespace, Name: account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: f.owner.Namespace},
	})
	f.waitAllowed(t)
	f.apply(t, "1.0.0", deployment(t))
	for len(f.repair(t).Unwatched) == 0 {
		f.waitForChange(t)
	}
	f.disempower(t)
	f.deleteDeployment(t)
	f.later.Add(int64(4 * time.Minute))
	if _, err := f.applier.Repair(t.Context(), f.owner); err == nil {
		t.Error("it was looked at without the right to do so")
	}
	got := f.workloads(t)[0]
	if got.Available != metav1.ConditionUnknown || !strings.Contains(got.Reason, "get, list and watch") {
		t.Errorf("the workload is %+v: nobody can know", got)
	}
}

// waitUnavailable waits until a watch has told that no pod of the Deployment runs.
func (f *fixture) waitUnavailable(t *testing.T) {
	t.Helper()
	workloads := f.workloads(t)
	for !settledAs(workloads, metav1.ConditionFalse) || workloads[0].Reason != "0 of 1 replicas are available" {
		f.waitForChange(t)
		f.repair(t)
		workloads = f.workloads(t)
	}
}

// disempower takes all rights from the ServiceAccount.
func (f *fixture) disempower(t *testing.T) {
	t.Helper()
	binding := &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: f.owner.Namespace}}
	if err := admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	f.waitMay(t, false, authorizationv1.ResourceAttributes{Verb: "get", Group: "apps", Resource: "deployments", Name: "d"})
}

func (f *fixture) deleteDeployment(t *testing.T) {
	t.Helper()
	object := deployment(t)
	object.SetNamespace(f.owner.Namespace)
	if err := admin.Delete(t.Context(), object); err != nil {
		t.Fatal(err)
	}
}

func settledAs(workloads []health.Workload, available metav1.ConditionStatus) bool {
	return len(workloads) == 1 && workloads[0].Available == available
}

func (f *fixture) workloads(t *testing.T) []health.Workload {
	t.Helper()
	workloads, known := f.applier.Workloads(f.owner)
	if !known {
		t.Fatal("the workloads are not known")
	}
	return workloads
}

func (f *fixture) repair(t *testing.T) installation.Result {
	t.Helper()
	result, err := f.applier.Repair(t.Context(), f.owner)
	if err != nil {
		t.Fatal(err)
	}
	return result
}
