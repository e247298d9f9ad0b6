package drift

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestDeferred: a deferred object is checked as soon as its workload is ready, and once.
func TestDeferred(t *testing.T) {
	t.Parallel()
	service := object.Key{GroupKind: object.APIServiceKind, Name: "v1.garden.test"}
	server := object.Key{GroupKind: health.DeploymentKind, Namespace: "ns", Name: "op"}
	deployed := &unstructured.Unstructured{Object: map[string]any{}}
	deployed.SetGeneration(1)
	deployed.SetResourceVersion("10")
	left := Left{
		Live:     map[object.Key]*unstructured.Unstructured{server: deployed},
		Deferred: map[object.Key][]object.Key{service: {server}},
	}
	printed := object.FingerprintOf(server.GroupKind, deployed)
	ready := health.Workload{Key: server, Available: metav1.ConditionTrue}

	s := NewState()
	if s.Settle(left, Certificates{}, time.Now()) {
		t.Error("it is not to wait although nothing is ready")
	}
	if some, all := s.ToLookAt(time.Now()); all || len(some) > 0 {
		t.Errorf("while it waits, %v are looked at, all = %t", some, all)
	}
	if workloads := s.Workloads(); len(workloads) != 2 || workloads[0].Available != metav1.ConditionFalse || !workloads[0].RollingOut {
		t.Errorf("the workloads are %+v", workloads)
	}
	if !s.noteWorkload(ready, printed) {
		t.Error("nobody is woken when the workload is ready")
	}
	if some, _ := s.ToLookAt(time.Now()); len(some) != 1 || some[0] != service {
		t.Errorf("%v are looked at when the workload is ready", some)
	}

	// It is created, and the cluster has said something of it before that is noted.
	made := &unstructured.Unstructured{Object: map[string]any{}}
	made.SetUID("u")
	made.SetResourceVersion("20")
	seen := made.DeepCopy()
	seen.SetResourceVersion("21")
	s.noteObject(service, Known{Fingerprint: object.FingerprintOf(service.GroupKind, seen), Version: "21"})
	if !s.SettleSome(Left{Live: map[object.Key]*unstructured.Unstructured{service: made}}, Certificates{}) {
		t.Error("nobody is woken for what was said of it meanwhile")
	}
	if some, _ := s.ToLookAt(time.Now()); len(some) != 1 {
		t.Errorf("%v are looked at after it was created", some)
	}
	if s.SettleSome(Left{Live: map[object.Key]*unstructured.Unstructured{service: seen}}, Certificates{}) {
		t.Error("it does not come to rest")
	}
	if some, _ := s.ToLookAt(time.Now()); len(some) > 0 {
		t.Errorf("at rest, %v are looked at", some)
	}

	// It is deleted while its workload is not ready.
	s.noteWorkload(health.Workload{Key: server, Available: metav1.ConditionFalse}, printed)
	s.noteObject(service, Known{Fingerprint: object.Fingerprint{Deleted: true}})
	if some, _ := s.ToLookAt(time.Now()); len(some) != 1 {
		t.Errorf("%v are looked at after it was deleted", some)
	}
	s.SettleSome(Left{Deferred: left.Deferred}, Certificates{})
	if some, _ := s.ToLookAt(time.Now()); len(some) > 0 {
		t.Errorf("while it waits again, %v are looked at", some)
	}

	// The workload is ready in the middle of an operation, for which nobody is woken.
	s.LookAtAll()
	s.noteWorkload(ready, printed)
	if !s.Settle(left, Certificates{}, time.Now()) {
		t.Error("an object whose server was ready before the end of the operation is still deferred")
	}
	if s.Settle(Left{}, Certificates{}, time.Now()); len(s.deferred) > 0 {
		t.Error("an object that the revision does not have any more is still deferred")
	}
}

// TestStaying: what is to be changed when a workload is ready is looked at then, and until then
// says so, whatever watches report of it. No operation takes it for what it is to be.
func TestStaying(t *testing.T) {
	t.Parallel()
	service := object.Key{GroupKind: object.APIServiceKind, Name: "v1.garden.test"}
	server := object.Key{GroupKind: health.DeploymentKind, Namespace: "ns", Name: "op"}
	deployed, registered := &unstructured.Unstructured{Object: map[string]any{}}, &unstructured.Unstructured{Object: map[string]any{}}
	registered.SetUID("u")
	left := Left{
		Live:     map[object.Key]*unstructured.Unstructured{server: deployed, service: registered},
		Deferred: map[object.Key][]object.Key{service: {server}},
	}
	serving := health.Workload{Key: service, Available: metav1.ConditionTrue}
	s := NewState()
	for what, settle := range map[string]func(){
		"all":  func() { s.Settle(left, Certificates{}, time.Now()) },
		"some": func() { s.SettleSome(left, Certificates{}) },
	} {
		settle()
		s.noteWorkload(serving, s.lastApplied[service])
		if s.noteWorkload(serving, s.lastApplied[service]) {
			t.Errorf("%s: the same wakes again", what)
		}
		said := s.workloads[service]
		if said.Available != metav1.ConditionTrue || !said.RollingOut || said.Serves() || said.Reason == "" {
			t.Errorf("%s: the workload is %+v", what, said)
		}
		if some, _ := s.ToLookAt(time.Now()); len(some) > 0 {
			t.Errorf("%s: while it stays, %v are looked at", what, some)
		}
		if _, same := s.NotDrifted()[service]; same {
			t.Errorf("%s: it is taken for what it is to be", what)
		}
	}
	s.noteWorkload(health.Workload{Key: server, Available: metav1.ConditionTrue}, s.lastApplied[server])
	if some, _ := s.ToLookAt(time.Now()); len(some) != 1 || some[0] != service {
		t.Errorf("%v are looked at when the workload is ready", some)
	}
	s.SettleSome(Left{Live: map[object.Key]*unstructured.Unstructured{service: registered}}, Certificates{})
	if s.noteWorkload(serving, s.lastApplied[service]); s.workloads[service] != serving {
		t.Errorf("after it was led there, the workload is %+v", s.workloads[service])
	}
}
