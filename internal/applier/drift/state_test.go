package drift

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
)

// TestWatchesThatAreAheadOfAnOperation has a cluster take a change up before the
// operation is over that made it.
func TestWatchesThatAreAheadOfAnOperation(t *testing.T) {
	t.Parallel()
	key := object.Key{GroupKind: health.DeploymentKind, Namespace: "ns", Name: "op"}
	deployment := func(generation int64) *unstructured.Unstructured {
		return &unstructured.Unstructured{Object: map[string]any{
			"apiVersion": "apps/v1", "kind": "Deployment",
			"metadata": map[string]any{"namespace": "ns", "name": "op", "uid": "u", "generation": generation},
			"status":   map[string]any{"observedGeneration": int64(1)},
		}}
	}
	up := health.Workload{Key: key, Available: metav1.ConditionTrue}
	tests := map[string]struct {
		reason string
		seen   *unstructured.Unstructured
		want   bool
	}{
		"the change": {reason: "the cluster does not say it again", seen: deployment(2), want: true},
		"before it":  {reason: "what was so before says nothing about the change", seen: deployment(1)},
		"nothing":    {reason: "what the operation left is all there is"},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for operation, settle := range map[string]func(*State, map[object.Key]*unstructured.Unstructured){
				"of all objects": func(s *State, live map[object.Key]*unstructured.Unstructured) {
					s.Settle(Left{Live: live}, Certificates{}, time.Now())
				},
				"of some": func(s *State, live map[object.Key]*unstructured.Unstructured) { s.SettleSome(live, Certificates{}) },
			} {
				s := NewState()
				s.Settle(Left{Live: map[object.Key]*unstructured.Unstructured{key: deployment(1)}}, Certificates{}, time.Now())
				if test.seen != nil {
					s.noteWorkload(up, object.FingerprintOf(health.DeploymentKind, test.seen))
				}
				settle(s, map[object.Key]*unstructured.Unstructured{key: deployment(2)})
				if got := !s.Workloads()[0].RollingOut; got != test.want {
					t.Errorf("operation %s: rolled out is %t: %s", operation, got, test.reason)
				}
				s.Settle(Left{Live: map[object.Key]*unstructured.Unstructured{key: deployment(2)}}, Certificates{}, time.Now())
				if !s.Workloads()[0].RollingOut {
					t.Errorf("operation %s: what was seen before the last operation counts in the next", operation)
				}
			}
		})
	}
}

// TestWorkloadsOfOthersAreNotRemembered: anybody can make and delete Deployments that
// look like content.
func TestWorkloadsOfOthersAreNotRemembered(t *testing.T) {
	t.Parallel()
	s := NewState()
	note := func() {
		for i := range 2 * maxSeenWorkloads {
			s.noteWorkload(health.Missing(object.Key{GroupKind: health.DeploymentKind, Name: fmt.Sprint(i)}), object.Fingerprint{Deleted: true})
		}
	}
	if note(); len(s.seen) > maxSeenWorkloads {
		t.Errorf("during an operation %d are remembered, want at most %d", len(s.seen), maxSeenWorkloads)
	}
	s.Settle(Left{}, Certificates{}, time.Now())
	if note(); len(s.seen) > 0 {
		t.Errorf("at rest %d are remembered, want none", len(s.seen))
	}
}
