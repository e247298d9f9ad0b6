package environment

import (
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/test/judge"
)

// written is a status that the controller has written.
func written(name, condition, reason, message string) *unstructured.Unstructured {
	ready := "False"
	if condition == "Ready" {
		ready = "True"
	}
	conditions := []any{map[string]any{"type": "Ready", "status": ready, "reason": reason, "message": message, "observedGeneration": int64(1)}}
	if condition != "Ready" {
		conditions = append(conditions, map[string]any{"type": condition, "status": "True", "reason": reason, "message": message, "observedGeneration": int64(1)})
	}
	return &unstructured.Unstructured{Object: map[string]any{
		"kind": "ClusterExtension", "metadata": map[string]any{"name": name, "generation": int64(1)},
		"status": map[string]any{"observedGeneration": int64(1), "conditions": conditions},
	}}
}

// TestHopeHasAnEnd: what waits for the same all the time has to tell somebody, once anything
// that is written shows that the controller works.
func TestHopeHasAnEnd(t *testing.T) {
	t.Parallel()
	const waits = "it has waited in the same hope"
	begin := time.Now()
	for name, test := range map[string]struct {
		between func(*statuses)
		after   time.Duration
		want    int // lies
	}{
		"for too long":          {after: judge.MaxHope + time.Second, want: 1},
		"not for long":          {after: judge.MaxHope - time.Second},
		"of another controller": {after: judge.MaxHope + time.Second, between: func(s *statuses) { s.begin(begin.Add(time.Minute)) }},
		"for something else": {after: judge.MaxHope + time.Second, between: func(s *statuses) {
			s.judge(t.Context(), written("x", "Reconciling", "Retrying", "b"), begin.Add(time.Minute))
		}},
		"told in time": {after: judge.MaxHope + time.Second, between: func(s *statuses) {
			s.judge(t.Context(), written("x", "Stalled", "Retrying", "a"), begin.Add(time.Minute))
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := &statuses{last: map[string]*lastStatus{}}
			s.judge(t.Context(), written("x", "Reconciling", "Retrying", "a"), begin)
			if test.between != nil {
				test.between(s)
			}
			s.judge(t.Context(), written("y", "Ready", "Succeeded", ""), begin.Add(test.after))
			s.judge(t.Context(), written("z", "Ready", "Succeeded", ""), begin.Add(test.after))
			if len(s.lies) != test.want || test.want > 0 && !strings.Contains(s.lies[0], waits) || s.err != nil {
				t.Errorf("%d lies, not %d: %v, %v", len(s.lies), test.want, s.lies, s.err)
			}
		})
	}
}
