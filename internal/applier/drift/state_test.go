package drift

import (
	"fmt"
	"testing"
	"time"

	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime/schema"

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

// TestNewestVersions are those of watches and of operations, whichever came last.
func TestNewestVersions(t *testing.T) {
	t.Parallel()
	counted := object.Key{GroupKind: health.DeploymentKind, Namespace: "ns", Name: "op"}
	plain := object.Key{GroupKind: schema.GroupKind{Kind: "ConfigMap"}, Namespace: "ns", Name: "cm"}
	live := func(version string) map[object.Key]*unstructured.Unstructured {
		found := map[object.Key]*unstructured.Unstructured{}
		for key, generation := range map[object.Key]int64{counted: 1, plain: 0} {
			obj := &unstructured.Unstructured{}
			obj.SetName(key.Name)
			obj.SetGeneration(generation)
			obj.SetResourceVersion(version)
			found[key] = obj
		}
		return found
	}
	s := NewState()
	check := func(when, wantCounted, wantPlain string) {
		t.Helper()
		known := s.NotDrifted()
		if known[counted].Version != wantCounted || known[plain].Version != wantPlain {
			t.Errorf("%s: versions %q and %q, want %q and %q", when, known[counted].Version, known[plain].Version, wantCounted, wantPlain)
		}
	}
	asLeft := Left{Live: live("9")}.LastApplied()
	s.noteObject(counted, asLeft[counted], "7")
	s.Settle(Left{Live: live("9")}, Certificates{}, time.Now())
	check("after an operation", "9", "9")
	s.noteObject(counted, asLeft[counted], "10")
	s.noteObject(counted, asLeft[counted], "8") // of a stream that was replaced
	check("after a change of a status", "10", "9")
	s.Settle(Left{Live: live("9")}, Certificates{}, time.Now())
	check("after an operation that the watch was ahead of", "10", "9")
	s.SettleSome(map[object.Key]*unstructured.Unstructured{counted: live("100")[counted]}, Certificates{})
	check("after a repair", "100", "9")
	theirs := asLeft[counted]
	theirs.Generation++
	s.noteObject(counted, theirs, "200")
	check("while it has drifted", "", "9")
	s.noteObject(counted, asLeft[counted], "100")
	check("when an older event comes", "100", "9")
	left := s.NotDrifted()
	s.Settle(Left{Untouched: map[object.Key]object.Fingerprint{counted: left[counted].Fingerprint}}, Certificates{}, time.Now())
	check("after an operation that left it untouched", "100", "")
	s.Settle(Left{}, Certificates{}, time.Now())
	if len(s.versions) > 0 {
		t.Errorf("remembered of what is not content any more: %v", s.versions)
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
