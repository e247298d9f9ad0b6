package controller

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func running(name string) Workload {
	return Workload{Name: name, Available: metav1.ConditionTrue, RolledOut: true}
}

func TestHealthInStatus(t *testing.T) {
	t.Parallel()
	atRest := func(workloads ...Workload) Outcome {
		return Outcome{
			Installed: installed("1.0.0"), Workloads: workloads,
			Target: Target{Action: Keep}, Onward: Target{Action: Keep},
		}
	}
	failed := func(err error, stage Stage, workloads ...Workload) Outcome {
		outcome := atRest(workloads...)
		outcome.Err, outcome.Stage = err, stage
		return outcome
	}
	rolling := Workload{Name: "d", Available: metav1.ConditionTrue, Reason: "1 of 2 replicas are of the new version"}
	tests := map[string]struct {
		reason  string
		outcome Outcome
		want    map[string]string // what of the status, with "" for absent
	}{
		"nothing to run": {
			outcome: atRest(),
			want: map[string]string{
				ocv1.TypeReady: "True Succeeded", ocv1.TypeAvailable: "True Available", ocv1.TypeReconciling: "", ocv1.TypeStalled: "",
			},
		},
		"all run": {
			outcome: atRest(running("d"), running("e")),
			want: map[string]string{
				ocv1.TypeReady: "True Succeeded", ocv1.TypeAvailable: "True Available", ocv1.TypeReconciling: "", ocv1.TypeStalled: "",
			},
		},
		"rolling out": {
			reason:  "the old pods still serve, but those who wait for the new version have to wait",
			outcome: atRest(running("c"), rolling),
			want: map[string]string{
				ocv1.TypeProgressing: "True Succeeded",
				ocv1.TypeReady:       "Unknown RollingOut", ocv1.TypeAvailable: "True Available",
				ocv1.TypeReconciling: "True RollingOut", ocv1.TypeStalled: "",
			},
		},
		"just made": {
			outcome: atRest(Workload{Name: "d", Available: metav1.ConditionUnknown, Reason: "r"}),
			want: map[string]string{
				ocv1.TypeReady: "Unknown RollingOut", ocv1.TypeAvailable: "Unknown AvailabilityUnknown", ocv1.TypeReconciling: "True RollingOut",
			},
		},
		"the cluster gave up": {
			reason:  "nothing is on its way any more",
			outcome: atRest(Workload{Name: "d", Available: metav1.ConditionFalse, Stuck: true, Reason: "r"}),
			want: map[string]string{
				ocv1.TypeReady: "False Unavailable", ocv1.TypeAvailable: "False Unavailable", ocv1.TypeReconciling: "", ocv1.TypeStalled: "",
			},
		},
		"one fails after the rollout": {
			outcome: atRest(running("c"), Workload{Name: "d", Available: metav1.ConditionFalse, RolledOut: true, Reason: "r"}),
			want:    map[string]string{ocv1.TypeReady: "False Unavailable", ocv1.TypeAvailable: "False Unavailable", ocv1.TypeReconciling: ""},
		},
		"retrying": {
			reason:  "it may go away by itself, so nobody has to act; what is installed serves meanwhile",
			outcome: failed(errors.New("boom"), StageFetch, running("d")),
			want: map[string]string{
				ocv1.TypeReady: "False Retrying", ocv1.TypeAvailable: "True Available", ocv1.TypeReconciling: "True Retrying", ocv1.TypeStalled: "",
			},
		},
		"waiting": {
			outcome: failed(&resolve.Error{Kind: resolve.NoBundle, Package: "p"}, StageResolve, running("d")),
			want:    map[string]string{ocv1.TypeReady: "False Retrying", ocv1.TypeReconciling: "True Retrying", ocv1.TypeStalled: ""},
		},
		"blocked": {
			outcome: failed(&UnusableImageError{Image: "x"}, StageFetch, running("d")),
			want: map[string]string{
				ocv1.TypeReady: "False Blocked", ocv1.TypeAvailable: "True Available", ocv1.TypeReconciling: "", ocv1.TypeStalled: "True Blocked",
			},
		},
		"nothing installed": {
			outcome: Outcome{Err: errors.New("boom"), Stage: StageFetch},
			want:    map[string]string{ocv1.TypeReady: "False Retrying", ocv1.TypeAvailable: "Unknown Absent"},
		},
		"records unreadable": {
			outcome: Outcome{Err: errors.New("boom"), Stage: StageObserve, Observed: Observed{InstallationErr: errors.New("boom")}},
			want:    map[string]string{ocv1.TypeReady: "Unknown Retrying"},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := statusAt(extension(), tc.outcome, time.Unix(1000, 0))
			for kind, want := range tc.want {
				found := ""
				if condition := meta.FindStatusCondition(got.Conditions, kind); condition != nil {
					found = string(condition.Status) + " " + condition.Reason
				}
				if found != want {
					t.Errorf("%s = %q, want %q (%s)", kind, found, want, tc.reason)
				}
			}
		})
	}
}

// TestProgressDeadline lets time pass over an extension that does not get on.
func TestProgressDeadline(t *testing.T) {
	t.Parallel()
	working := Outcome{Err: errors.New("boom"), Stage: StageFetch}
	done := Outcome{Installed: installed("1.0.0"), Target: Target{Action: Keep}, Onward: Target{Action: Keep}}
	steps := []struct {
		minute     int
		outcome    Outcome
		generation int64
		want       string // Progressing, and what passes
		remaining  time.Duration
	}{
		{minute: 0, outcome: working, generation: 7, want: "True Retrying, Reconciling", remaining: 10 * time.Minute},
		{minute: 9, outcome: working, generation: 7, want: "True Retrying, Reconciling", remaining: time.Minute},
		{minute: 10, outcome: working, generation: 7, want: "False ProgressDeadlineExceeded, Stalled"},
		{minute: 11, outcome: working, generation: 7, want: "False ProgressDeadlineExceeded, Stalled"},
		{minute: 12, outcome: done, generation: 7, want: "True Succeeded"},
		{minute: 13, outcome: working, generation: 7, want: "True Retrying, Reconciling", remaining: 10 * time.Minute},
		{minute: 20, outcome: working, generation: 8, want: "True Retrying, Reconciling", remaining: 10 * time.Minute},
		{minute: 29, outcome: working, generation: 8, want: "True Retrying, Reconciling", remaining: time.Minute},
		{minute: 30, outcome: working, generation: 8, want: "False ProgressDeadlineExceeded, Stalled"},
		{minute: 31, outcome: working, generation: 9, want: "True Retrying, Reconciling", remaining: 10 * time.Minute},
	}
	ext := extension()
	ext.Spec.ProgressDeadlineMinutes = 10
	for _, step := range steps {
		now := time.Unix(0, 0).Add(time.Duration(step.minute) * time.Minute)
		ext.Generation = step.generation
		v := classify(step.outcome)
		p := phaseOf(ext, step.outcome, v, now)
		ext.Status = *statusOf(ext, step.outcome, v, p, now)
		progressing := meta.FindStatusCondition(ext.Status.Conditions, ocv1.TypeProgressing)
		got := string(progressing.Status) + " " + progressing.Reason
		for _, kind := range ocv1.ClusterExtensionPassingConditionTypes() {
			if meta.FindStatusCondition(ext.Status.Conditions, kind) != nil {
				got += ", " + kind
			}
		}
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("minute %d (-want +got):\n%s", step.minute, diff)
		}
		if p.remaining != step.remaining {
			t.Errorf("minute %d: %s are left, want %s", step.minute, p.remaining, step.remaining)
		}
	}
}

func TestWorkloadsThatStopAreTold(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.workloads = []Workload{running("d")}
	w.mustReconcile(t)
	w.workloads = []Workload{{Name: "d", Available: metav1.ConditionFalse, RolledOut: true, Reason: "no node"}}
	w.mustReconcile(t)
	ready := w.ready(t)
	if ready.Status != metav1.ConditionFalse || ready.Reason != ocv1.ReasonUnavailable {
		t.Errorf("Ready is %s %s", ready.Status, ready.Reason)
	}
	want := `Warning Unavailable: "p.v1.0.0" version "1.0.0" is installed, from catalog "c"; workloads: d: no node`
	if len(w.told) != 2 || w.told[1] != want {
		t.Errorf("told %q, want %q", w.told, want)
	}
}

// TestHealthIsNotClaimedUnseen covers passes that fail before they have looked at
// the content, or while they do.
func TestHealthIsNotClaimedUnseen(t *testing.T) {
	t.Parallel()
	down := Workload{Name: "d", Available: metav1.ConditionFalse, RolledOut: true, Reason: "no node"}
	tests := map[string]struct {
		change func(*world)
		want   metav1.ConditionStatus
	}{
		"never looked at":                {change: func(w *world) { w.unseen = true }, want: metav1.ConditionUnknown},
		"seen down before repair failed": {change: func(w *world) { w.workloads = []Workload{down} }, want: metav1.ConditionFalse},
		"seen well before repair failed": {change: func(w *world) { w.workloads = []Workload{running("d")} }, want: metav1.ConditionTrue},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			w.installation.Installed = &Installed{Bundle: identity("1.0.0"), Image: "registry.test/p:v1.0.0"}
			w.repairErr = errors.New("forbidden")
			tc.change(w)
			if _, err := w.reconcile(t); err == nil {
				t.Fatal("a failed repair is not tried again")
			}
			condition := meta.FindStatusCondition(w.extension(t).Status.Conditions, ocv1.TypeAvailable)
			if condition == nil || condition.Status != tc.want {
				t.Errorf("Available is %+v, want %s", condition, tc.want)
			}
		})
	}
}
