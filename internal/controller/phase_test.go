package controller

import (
	"cmp"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/runtime"
	"k8s.io/apimachinery/pkg/runtime/schema"
	kstatus "sigs.k8s.io/cli-utils/pkg/kstatus/status"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

func deployment(name string) object.Key {
	return object.Key{GroupKind: health.DeploymentKind, Name: name}
}

func running(name string) health.Workload {
	return health.Workload{Key: deployment(name), Available: metav1.ConditionTrue}
}

func TestHealthInStatus(t *testing.T) {
	t.Parallel()
	atRest := func(workloads ...health.Workload) Outcome {
		return Outcome{
			Installed: installed("1.0.0"), Workloads: workloads,
			Target: Target{Action: Keep}, Onward: Target{Action: Keep},
		}
	}
	failed := func(err error, stage Stage, workloads ...health.Workload) Outcome {
		outcome := atRest(workloads...)
		outcome.Err, outcome.Stage = err, stage
		return outcome
	}
	rolling := health.Workload{Key: deployment("d"), Available: metav1.ConditionTrue, RollingOut: true, Reason: "1 of 2 replicas are of the new version"}
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
			outcome: atRest(health.Workload{Key: deployment("d"), Available: metav1.ConditionUnknown, RollingOut: true, Reason: "r"}),
			want: map[string]string{
				ocv1.TypeReady: "Unknown RollingOut", ocv1.TypeAvailable: "Unknown AvailabilityUnknown", ocv1.TypeReconciling: "True RollingOut",
			},
		},
		"the cluster gave up": {
			reason:  "nothing is on its way any more, and somebody has to act; the content is applied all the same",
			outcome: atRest(health.Workload{Key: deployment("d"), Available: metav1.ConditionFalse, Stuck: true, Reason: "r"}),
			want: map[string]string{
				ocv1.TypeProgressing: "True Succeeded",
				ocv1.TypeReady:       "False RolloutFailed", ocv1.TypeAvailable: "False Unavailable",
				ocv1.TypeReconciling: "", ocv1.TypeStalled: "True RolloutFailed",
			},
		},
		"the cluster gave up, and the old pods serve": {
			outcome: atRest(health.Workload{Key: deployment("d"), Available: metav1.ConditionTrue, Stuck: true, Reason: "r"}, rolling),
			want: map[string]string{
				ocv1.TypeReady: "False RolloutFailed", ocv1.TypeAvailable: "True Available",
				ocv1.TypeReconciling: "", ocv1.TypeStalled: "True RolloutFailed",
			},
		},
		"fewer than wanted after the rollout": {
			reason:  "the cluster says that enough serve, as when a node is drained",
			outcome: atRest(health.Workload{Key: deployment("d"), Available: metav1.ConditionTrue, Reason: "2 of 3 replicas are available"}),
			want: map[string]string{
				ocv1.TypeReady: "True Succeeded", ocv1.TypeAvailable: "True Available", ocv1.TypeReconciling: "", ocv1.TypeStalled: "",
			},
		},
		"one cannot be looked at": {
			outcome: atRest(running("c"), health.Workload{Key: deployment("d"), Available: metav1.ConditionUnknown, Reason: "r"}),
			want: map[string]string{
				ocv1.TypeReady: "Unknown AvailabilityUnknown", ocv1.TypeAvailable: "Unknown AvailabilityUnknown",
				ocv1.TypeReconciling: "", ocv1.TypeStalled: "",
			},
		},
		"one step of several is done": {
			reason: "who waits for Succeeded must not take this version for the last one",
			outcome: Outcome{
				Installed: installed("1.0.0"), Workloads: []health.Workload{running("d")},
				Target: Target{Action: Upgrade}, Onward: Target{Action: Upgrade, Bundle: identity("1.1.0")},
			},
			want: map[string]string{
				ocv1.TypeProgressing: "True RollingOut", ocv1.TypeReady: "Unknown RollingOut",
				ocv1.TypeReconciling: "True RollingOut", ocv1.TypeStalled: "",
			},
		},
		"one fails after the rollout": {
			outcome: atRest(running("c"), health.Workload{Key: deployment("d"), Available: metav1.ConditionFalse, Reason: "r"}),
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

// TestPhasesOverTime lets time pass over extensions that do not get on.
func TestPhasesOverTime(t *testing.T) {
	t.Parallel()
	failing := func(text string) Outcome { return Outcome{Err: errors.New(text), Stage: StageFetch} }
	waiting := Outcome{Err: &resolve.Error{Kind: resolve.NoBundle, Package: "p"}, Stage: StageResolve}
	settled := func(workloads ...health.Workload) Outcome {
		return Outcome{
			Installed: installed("1.0.0"), Workloads: workloads, Target: Target{Action: Keep}, Onward: Target{Action: Keep},
		}
	}
	rolling := settled(health.Workload{Key: deployment("d"), Available: metav1.ConditionTrue, RollingOut: true, Reason: "r"})
	stuck := settled(health.Workload{Key: deployment("d"), Available: metav1.ConditionTrue, Stuck: true, Reason: "r"})
	down := settled(health.Workload{Key: deployment("d"), Available: metav1.ConditionFalse, Reason: "r"})
	settling := func(left time.Duration, recovered bool) Outcome {
		outcome := settled(running("d"))
		outcome.Settling = health.Settling{Keys: []object.Key{deployment("d")}, For: 5 * time.Second, Left: left, Recovered: recovered}
		return outcome
	}
	const (
		second    = time.Second
		minute    = time.Minute
		retrying  = "Progressing True Retrying, Ready False Retrying"
		isDone    = "Progressing True Succeeded, Ready True Succeeded"
		isDown    = "Progressing True Succeeded, Ready False Unavailable"
		isRolling = "Progressing True Succeeded, Ready Unknown RollingOut, Reconciling"
		isOver    = "Progressing False ProgressDeadlineExceeded, Ready False ProgressDeadlineExceeded, Stalled"
	)
	type step struct {
		at         time.Duration
		outcome    Outcome
		generation int64 // 7 if it is zero
		restarted  bool  // before this step
		want       string
		remaining  time.Duration
	}
	tests := map[string]struct {
		deadline int32
		steps    []step
	}{
		"the same error": {steps: []step{
			{at: 0, outcome: failing("a"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: minute, outcome: failing("a"), want: retrying + ", Reconciling", remaining: minute},
			{at: 2 * minute, outcome: failing("a"), want: retrying + ", Stalled"},
			{at: 9 * minute, outcome: failing("a"), want: retrying + ", Stalled"},
			{at: 10 * minute, outcome: failing("b"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: 11 * minute, outcome: settled(), want: isDone},
		}},
		"what is watched": {steps: []step{
			{at: 0, outcome: waiting, want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: 2 * minute, outcome: waiting, want: retrying + ", Stalled"},
			{at: 3 * minute, outcome: waiting, generation: 8, want: retrying + ", Reconciling", remaining: 2 * minute},
		}},
		"errors in turn": {steps: []step{
			{at: 0, outcome: failing("a"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: minute, outcome: failing("b"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: 2 * minute, outcome: failing("a"), want: retrying + ", Reconciling", remaining: minute},
			{at: 3 * minute, outcome: failing("b"), want: retrying + ", Stalled"},
			{at: 4 * minute, outcome: failing("a"), want: retrying + ", Stalled"},
			{at: 5 * minute, outcome: failing("c"), want: retrying + ", Reconciling", remaining: 2 * minute},
		}},
		"another text each time": {steps: []step{
			{at: 0, outcome: failing("a"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: minute, outcome: failing("b"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: 2 * minute, outcome: failing("c"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: 3 * minute, outcome: failing("d"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: 4 * minute, outcome: failing("e"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: 5 * minute, outcome: failing("f"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: 6 * minute, outcome: failing("g"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: 7 * minute, outcome: failing("h"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: 8 * minute, outcome: failing("i"), want: retrying + ", Reconciling", remaining: minute},
			{at: 9 * minute, outcome: failing("j"), want: retrying + ", Stalled"},
		}},
		"a restart forgets what was not shown": {steps: []step{
			{at: 0, outcome: failing("a"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: minute, outcome: failing("a"), restarted: true, want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: 3 * minute, outcome: failing("a"), want: retrying + ", Stalled"},
			{at: 4 * minute, outcome: failing("a"), restarted: true, want: retrying + ", Stalled"},
			{at: 5 * minute, outcome: failing("b"), restarted: true, want: retrying + ", Reconciling", remaining: 2 * minute},
		}},
		"pods that die after the rollout": {steps: []step{
			{at: 0, outcome: settled(running("d")), want: isDone},
			{at: minute, outcome: down, want: isDown, remaining: 2 * minute},
			{at: 3 * minute, outcome: down, want: isDown + ", Stalled"},
			{at: 4 * minute, outcome: down, restarted: true, want: isDown + ", Stalled"},
			{at: 5 * minute, outcome: settled(running("d")), want: isDone},
			{at: 6 * minute, outcome: down, want: isDown, remaining: 2 * minute},
		}},
		"an operator that stays": {steps: []step{
			{at: 0, outcome: rolling, want: isRolling},
			{at: minute, outcome: settling(5*second, false), want: isRolling, remaining: 5 * second},
			{at: minute + 2*second, outcome: settling(3*second, false), restarted: true, want: isRolling, remaining: 3 * second},
			{at: minute + 5*second, outcome: settled(running("d")), want: isDone},
			{at: minute + 6*second, outcome: settled(running("d")), restarted: true, want: isDone},
		}},
		"an operator that ends 2 s after each start": {steps: []step{
			{at: 0, outcome: settling(5*second, false), want: isRolling, remaining: 5 * second},
			{at: 2 * second, outcome: down, want: isDown, remaining: 2 * minute},
			{at: 12 * second, outcome: settling(5*second, true), want: isDown, remaining: 5 * second},
			{at: 14 * second, outcome: down, want: isDown, remaining: 2*minute - 2*second},
			{at: 2*minute + 14*second, outcome: settling(5*second, true), want: isDown + ", Stalled", remaining: 5 * second},
			{at: 2*minute + 16*second, outcome: down, want: isDown + ", Stalled"},
			{at: 9 * minute, outcome: settled(running("d")), want: isDone},
		}},
		"a deadline, and an operator that stays": {deadline: 10, steps: []step{
			{at: 0, outcome: rolling, want: isRolling, remaining: 10 * minute},
			{at: 10*minute - second, outcome: settling(5*second, false), want: isRolling, remaining: second},
			{at: 10 * minute, outcome: settling(4*second, false), want: isOver, remaining: 4 * second},
			{at: 10*minute + 4*second, outcome: settled(running("d")), want: isDone},
		}},
		"a rollout that takes its time": {steps: []step{
			{at: 0, outcome: rolling, want: "Progressing True Succeeded, Ready Unknown RollingOut, Reconciling"},
			{at: 9 * minute, outcome: rolling, want: "Progressing True Succeeded, Ready Unknown RollingOut, Reconciling"},
			{at: 10 * minute, outcome: stuck, want: "Progressing True Succeeded, Ready False RolloutFailed, Stalled"},
			{at: 20 * minute, outcome: rolling, want: "Progressing True Succeeded, Ready Unknown RollingOut, Reconciling"},
			{at: 21 * minute, outcome: settled(running("d")), want: isDone},
		}},
		"a deadline": {deadline: 10, steps: []step{
			{at: 0, outcome: failing("a"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: minute, outcome: failing("b"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: 3 * minute, outcome: failing("b"), want: retrying + ", Stalled", remaining: 7 * minute},
			{at: 4 * minute, outcome: failing("c"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: 9 * minute, outcome: failing("d"), want: retrying + ", Reconciling", remaining: minute},
			{at: 10 * minute, outcome: failing("d"), want: isOver},
			{at: 11 * minute, outcome: failing("e"), want: isOver},
			{at: 12 * minute, outcome: failing("e"), restarted: true, want: isOver},
			{at: 13 * minute, outcome: settled(), want: isDone},
			{at: 14 * minute, outcome: failing("a"), want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: 23 * minute, outcome: failing("b"), generation: 8, want: retrying + ", Reconciling", remaining: 2 * minute},
			{at: 32 * minute, outcome: failing("c"), generation: 8, want: retrying + ", Reconciling", remaining: minute},
			{at: 33 * minute, outcome: failing("c"), generation: 8, want: isOver},
			{at: 34 * minute, outcome: failing("c"), generation: 9, want: retrying + ", Reconciling", remaining: 2 * minute},
		}},
		"a deadline, and a restart": {deadline: 10, steps: []step{
			{at: 0, outcome: rolling, want: "Progressing True Succeeded, Ready Unknown RollingOut, Reconciling", remaining: 10 * minute},
			{at: 9 * minute, outcome: rolling, restarted: true, want: "Progressing True Succeeded, Ready Unknown RollingOut, Reconciling", remaining: minute},
			{at: 10*minute - second, outcome: stuck, want: "Progressing True Succeeded, Ready False RolloutFailed, Stalled", remaining: second},
			{at: 10 * minute, outcome: stuck, want: isOver},
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := extension()
			ext.Spec.ProgressDeadlineMinutes = test.deadline
			var remembered efforts
			for _, step := range test.steps {
				if step.restarted {
					remembered = efforts{}
				}
				now := time.Unix(1000, 0).Add(step.at)
				ext.Generation = cmp.Or(step.generation, 7)
				v := classify(step.outcome)
				p := phaseOf(ext, step.outcome, v, remembered, now)
				remembered = p.efforts
				ext.Status = *statusOf(ext, step.outcome, v, p, now)
				if got := inShort(&ext.Status); got != step.want {
					t.Errorf("after %s: %s, want %s", step.at, got, step.want)
				}
				if got, want := kstatusOf(t, ext), wantedKstatus(step.want); got != want {
					t.Errorf("after %s: kstatus says %s, want %s", step.at, got, want)
				}
				if p.remaining != step.remaining {
					t.Errorf("after %s: %s are left, want %s", step.at, p.remaining, step.remaining)
				}
			}
		})
	}
}

// wantedKstatus is what tools are to make of what [inShort] gives: somebody has to
// act, or to wait, or may go on.
func wantedKstatus(short string) kstatus.Status {
	switch {
	case strings.Contains(short, "Stalled"):
		return kstatus.FailedStatus
	case strings.Contains(short, "Ready True"):
		return kstatus.CurrentStatus
	default:
		return kstatus.InProgressStatus
	}
}

// kstatusOf is what tools such as Flux take an extension for.
func kstatusOf(t *testing.T, ext *ocv1.ClusterExtension) kstatus.Status {
	t.Helper()
	object, err := runtime.DefaultUnstructuredConverter.ToUnstructured(ext)
	if err != nil {
		t.Fatal(err)
	}
	result, err := kstatus.Compute(&unstructured.Unstructured{Object: object})
	if err != nil {
		t.Fatal(err)
	}
	return result.Status
}

// inShort is what a status says of the way to the end, without the texts.
func inShort(status *ocv1.ClusterExtensionStatus) string {
	var parts []string
	for _, kind := range []string{ocv1.TypeProgressing, ocv1.TypeReady} {
		if condition := meta.FindStatusCondition(status.Conditions, kind); condition != nil {
			parts = append(parts, fmt.Sprintf("%s %s %s", kind, condition.Status, condition.Reason))
		}
	}
	for _, kind := range ocv1.ClusterExtensionPassingConditionTypes() {
		if meta.FindStatusCondition(status.Conditions, kind) != nil {
			parts = append(parts, kind)
		}
	}
	return strings.Join(parts, ", ")
}

func TestWorkloadsThatStopAreTold(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.workloads = []health.Workload{running("d")}
	w.mustReconcile(t)
	w.workloads = []health.Workload{{Key: deployment("d"), Available: metav1.ConditionFalse, Reason: "no node"}}
	w.mustReconcile(t)
	ready := w.ready(t)
	if ready.Status != metav1.ConditionFalse || ready.Reason != ocv1.ReasonUnavailable {
		t.Errorf("Ready is %s %s", ready.Status, ready.Reason)
	}
	want := `Warning Unavailable: "p.v1.0.0" version "1.0.0" is installed, from catalog "c"; workloads: Deployment "d": no node; ` +
		"`kubectl -n ns get pods,events` says more"
	if len(w.events) != 2 || w.events[1] != want {
		t.Errorf("told %q, want %q", w.events, want)
	}
}

// TestNextCommand is F1: a command that shows the cause of a problem without pods.
func TestNextCommand(t *testing.T) {
	t.Parallel()
	const pods = "`kubectl -n ns get pods,events` says more"
	at := func(kind, namespace string, status metav1.ConditionStatus) health.Workload {
		return health.Workload{Key: object.Key{GroupKind: schema.ParseGroupKind(kind), Namespace: namespace, Name: "x"}, Available: status}
	}
	for name, test := range map[string]struct {
		workloads []health.Workload
		want      string
	}{
		"a Deployment":      {workloads: []health.Workload{at("Deployment.apps", "ns", metav1.ConditionFalse)}, want: pods},
		"a custom resource": {workloads: []health.Workload{at("Widget.example.test", "ns", metav1.ConditionFalse)}, want: "`kubectl -n ns describe Widget.example.test x` says more"},
		"a CRD": {
			workloads: []health.Workload{at("Deployment.apps", "ns", metav1.ConditionTrue), at("CustomResourceDefinition.apiextensions.k8s.io", "", metav1.ConditionFalse)},
			want:      "`kubectl describe CustomResourceDefinition.apiextensions.k8s.io x` says more",
		},
		"both": {
			workloads: []health.Workload{at("Widget.example.test", "ns", metav1.ConditionFalse), at("Pod", "ns", metav1.ConditionFalse)}, want: pods,
		},
		"a long name": {workloads: []health.Workload{at("Widget.example.test", strings.Repeat("n", 300), metav1.ConditionFalse)}, want: pods},
	} {
		outcome := Outcome{Owner: object.Owner{Namespace: "ns"}, Workloads: test.workloads}
		if got := lookAt(outcome); got != test.want {
			t.Errorf("%s: %s, want %s", name, got, test.want)
		}
	}
}

// TestHealthIsNotClaimedUnseen covers passes that fail before they have looked at
// the content, or while they do.
func TestHealthIsNotClaimedUnseen(t *testing.T) {
	t.Parallel()
	down := health.Workload{Key: deployment("d"), Available: metav1.ConditionFalse, Reason: "no node"}
	tests := map[string]struct {
		change func(*world)
		want   metav1.ConditionStatus
	}{
		"never looked at":                {change: func(w *world) { w.unseen = true }, want: metav1.ConditionUnknown},
		"seen down before repair failed": {change: func(w *world) { w.workloads = []health.Workload{down} }, want: metav1.ConditionFalse},
		"seen well before repair failed": {change: func(w *world) { w.workloads = []health.Workload{running("d")} }, want: metav1.ConditionTrue},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			w.installation.Installed = &installation.Revision{Bundle: identity("1.0.0"), Image: "registry.test/p:v1.0.0"}
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
