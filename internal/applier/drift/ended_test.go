package drift

import (
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestJobsThatAreDone (F18) has a repair find that a Job is done which a watch has reported as deleted.
func TestJobsThatAreDone(t *testing.T) {
	t.Parallel()
	key := object.Key{GroupKind: object.JobKind, Namespace: "ns", Name: "j"}
	job := &unstructured.Unstructured{Object: map[string]any{"apiVersion": "batch/v1", "kind": "Job", "metadata": map[string]any{"uid": "u", "generation": int64(1)}}}
	gone := object.Fingerprint{Deleted: true}
	done := Left{Untouched: map[object.Key]object.Fingerprint{key: gone}}
	for name, tc := range map[string]struct {
		ended  health.Workload
		settle func(*State) bool
		want   int // workloads
	}{
		"F18: it was complete":        {health.Workload{Key: key, Available: metav1.ConditionTrue, Ended: true}, func(s *State) bool { return s.SettleSome(done, Certificates{}) }, 0},
		"F18: it had failed":          {health.Workload{Key: key, Available: metav1.ConditionFalse, Stuck: true, Ended: true}, func(s *State) bool { return s.SettleSome(done, Certificates{}) }, 1},
		"F18: its result is unknown":  {health.Missing(key), func(s *State) bool { return s.SettleSome(done, Certificates{}) }, 0},
		"F18: all objects were read":  {health.Missing(key), func(s *State) bool { return s.Settle(done, Certificates{}, time.Now()) }, 0},
		"F18: all, and it had failed": {health.Workload{Key: key, Available: metav1.ConditionFalse, Stuck: true, Ended: true}, func(s *State) bool { return s.Settle(done, Certificates{}, time.Now()) }, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := NewState()
			s.Settle(Left{Live: map[object.Key]*unstructured.Unstructured{key: job}}, Certificates{}, time.Now())
			if !s.noteObject(key, Known{Fingerprint: gone, Version: "7"}) {
				t.Error("the deletion does not trigger a reconcile")
			}
			s.noteWorkload(tc.ended, gone)
			if tc.settle(s) {
				t.Error("it is looked at again")
			}
			if keys, all := s.ToLookAt(time.Now()); len(keys) != 0 || all {
				t.Errorf("%v are to be read, all: %t", keys, all)
			}
			if workloads := s.Workloads(); len(workloads) != tc.want {
				t.Errorf("workloads are %+v", workloads)
			}
			if s.noteObject(key, Known{Fingerprint: gone, Version: "8"}) {
				t.Error("the deletion counts again")
			}
			if !s.noteObject(key, Known{Fingerprint: object.Fingerprint{UID: "other", Generation: 1}, Version: "9"}) {
				t.Error("a new object of the same name does not trigger a reconcile")
			}
		})
	}
}
