package controller

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func TestRepairsAreToldNowAndThen(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.mustReconcile(t)
	w.told = nil
	steps := []struct {
		does     string
		after    time.Duration
		restored []object.Key
		told     []string
		wait     time.Duration
	}{
		{does: "nothing", told: nil},
		{does: "the first", restored: []object.Key{keyOf("Service", "", "b"), keyOf("ConfigMap", "", "a")}, told: []string{
			`Normal Repaired: brought back to what is installed: ConfigMap "a", Service "b"`,
		}},
		{does: "another", after: time.Minute, restored: []object.Key{keyOf("Service", "", "b")}, wait: 4 * time.Minute},
		{does: "one more", after: time.Minute, restored: []object.Key{keyOf("Secret", "", "c")}, wait: 3 * time.Minute},
		{does: "they are told together", after: 3 * time.Minute, told: []string{
			`Normal Repaired: brought back to what is installed: Secret "c", Service "b"`,
		}},
		{does: "nothing more", after: time.Hour},
	}
	for _, step := range steps {
		w.passed += step.after
		w.repair = installation.Result{Changes: changesTo(step.restored...)}
		result, err := w.reconcile(t)
		if err != nil || result.RequeueAfter != step.wait {
			t.Errorf("%s: the next pass comes after %s (%v), want %s", step.does, result.RequeueAfter, err, step.wait)
		}
		if diff := cmp.Diff(step.told, w.told); diff != "" {
			t.Errorf("%s: events (-want +got):\n%s", step.does, diff)
		}
		w.told = nil
	}
	if len(w.reconciler.repairs.known) != 0 {
		t.Errorf("it remembers %v when nothing is left to tell", w.reconciler.repairs.known)
	}
}

func TestRepairsAreBounded(t *testing.T) {
	t.Parallel()
	var objects []string
	for i := range 50 {
		objects = append(objects, fmt.Sprintf("%02d %s", i, strings.Repeat("x", 97)))
	}
	_, news, _ := repairs{}.with(objects).news(time.Unix(1000, 0))
	if news == nil || len(news.note) > maxText || !strings.HasPrefix(news.note, "brought back to what is installed: 00 x") ||
		!strings.HasSuffix(news.note, " and 46 more") {
		t.Errorf("told %+v", news)
	}
}

// TestReport: what changed is logged, and what stands in the way once.
func TestReport(t *testing.T) {
	t.Parallel()
	target := func(action Action) Target { return Target{Action: action, Bundle: identity("1.1.0")} }
	tests := map[string]struct {
		outcome Outcome
		isNews  bool
		want    []string
	}{
		"installed": {outcome: Outcome{Target: target(Install)}, isNews: true, want: []string{"applied"}},
		"upgraded":  {outcome: Outcome{Target: target(Upgrade)}, want: []string{"applied"}},
		"an upgrade that waits for approval": {
			outcome: Outcome{Target: target(Upgrade), Pending: &preflight.ApprovalError{}}, isNews: true, want: []string{"waits for approval"},
		},
		"it still waits": {outcome: Outcome{Target: target(Upgrade), Pending: &preflight.ApprovalError{}}},
		"refused": {
			outcome: Outcome{Target: target(Upgrade), Stage: StageApply, Err: &resolve.Error{}}, isNews: true, want: []string{"not as wanted"},
		},
		"still refused": {outcome: Outcome{Target: target(Upgrade), Stage: StageApply, Err: &resolve.Error{}}},
		"repaired": {
			outcome: Outcome{Target: target(Keep), Repaired: []string{`ConfigMap "a"`}}, want: []string{"repaired"},
		},
		"repaired while an upgrade waits": {
			outcome: Outcome{Target: target(Upgrade), Pending: &preflight.ApprovalError{}, Repaired: []string{`ConfigMap "a"`}}, want: []string{"repaired"},
		},
		"at rest": {outcome: Outcome{Target: target(Keep)}},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			logger := funcr.NewJSON(func(line string) { got = append(got, messageIn(t, line)) }, funcr.Options{})
			report(log.IntoContext(t.Context(), logger), tc.outcome, tc.isNews)
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Errorf("logged at V(0) (-want +got):\n%s", diff)
			}
		})
	}
}

func messageIn(t *testing.T, line string) string {
	t.Helper()
	var entry struct {
		Msg string `json:"msg"`
	}
	if err := json.Unmarshal([]byte(line), &entry); err != nil {
		t.Fatal(err)
	}
	return entry.Msg
}

// changesTo are those of a repair.
func changesTo(keys ...object.Key) map[object.Key]object.Change {
	changes := map[object.Key]object.Change{}
	for _, key := range keys {
		changes[key] = object.Updated
	}
	return changes
}
