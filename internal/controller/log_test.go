package controller

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/go-logr/logr/funcr"
	"github.com/google/go-cmp/cmp"
	"sigs.k8s.io/controller-runtime/pkg/log"

	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/resolve"
)

// TestLoggedChanges: there is one line for each change in the world.
func TestLoggedChanges(t *testing.T) {
	t.Parallel()
	before := Observed{Installation: installation.State{Installed: &installation.Revision{Bundle: identity("1.0.0")}}}
	settings, service := keyOf("ConfigMap", "n", "settings"), keyOf("Service", "n", "s")
	result := func(created, updated, deleted int) *installation.Result {
		changes := map[object.Key]object.Change{}
		for change, count := range map[object.Change]int{object.Created: created, object.Updated: updated, object.Deleted: deleted, object.Unchanged: 1} {
			for i := range count {
				changes[keyOf(string(change), "", strconv.Itoa(i))] = change
			}
		}
		return &installation.Result{Changes: changes}
	}
	certified := func(result installation.Result, differences map[object.Key][]object.Difference) installation.Result {
		result.Certified = differences
		return result
	}
	repair := func(differences map[object.Key]object.Difference) installation.Result {
		return installation.Result{Changes: changesTo(slices.Collect(maps.Keys(differences))...), Differences: differences}
	}
	to := func(version string) Target { return Target{Bundle: identity(version)} }
	tests := map[string]struct {
		outcome Outcome
		want    []string
	}{
		"nothing": {},
		"other inputs of the same bundle": {
			outcome: Outcome{Observed: before, Target: to("1.0.0"), Applied: result(0, 1, 0)},
			want:    []string{"applied anew bundle=p.v1.0.0 version=1.0.0 created=0 changed=1 removed=0"},
		},
		"an install that failed half-way": {
			outcome: Outcome{Target: to("1.0.0"), Applied: result(2, 0, 0), Began: true, Stage: StageApply, Err: errors.New("boom")},
			want:    []string{"applied in part bundle=p.v1.0.0 version=1.0.0 created=2 changed=0 removed=0"},
		},
		"an upgrade that failed half-way": {
			outcome: Outcome{Observed: before, Target: to("1.1.0"), Applied: result(1, 1, 0), Began: true, Stage: StageApply, Err: errors.New("boom")},
			want:    []string{"applied in part from=1.0.0 bundle=p.v1.1.0 version=1.1.0 created=1 changed=1 removed=0"},
		},
		"a repair of more than can be named": {
			outcome: Outcome{Observed: before, Repair: repair(map[object.Key]object.Difference{
				keyOf("ConfigMap", "n", strings.Repeat("n", 1000)): {Fields: []string{"a"}, More: 9},
			})},
			want: []string{"repaired object={ConfigMap n " + inLine(strings.Repeat("n", 1000)) + "} missing=false fields=a and 9 more"},
		},
		"what was deferred is created": {
			outcome: Outcome{Observed: before, Repair: repair(map[object.Key]object.Difference{
				keyOf("APIService", "", "v1.p"): {Missing: true, Due: true},
			})},
			want: []string{"created object={APIService  v1.p}"},
		},
		"what was deferred is changed": {
			outcome: Outcome{Observed: before, Repair: repair(map[object.Key]object.Difference{
				keyOf("APIService", "", "v1.p"): {Fields: []string{"spec.service.name"}, Due: true},
			})},
			want: []string{"changed object={APIService  v1.p} fields=spec.service.name"},
		},
		"installed": {
			outcome: Outcome{Target: to("1.0.0"), Applied: result(4, 0, 0)},
			want:    []string{"installed bundle=p.v1.0.0 version=1.0.0 created=4 changed=0 removed=0"},
		},
		"upgraded": {
			outcome: Outcome{Observed: before, Target: to("1.1.0"), Applied: result(1, 2, 3)},
			want: []string{
				"deleted object={deleted  0}", "deleted object={deleted  1}", "deleted object={deleted  2}",
				"upgraded from=1.0.0 bundle=p.v1.1.0 version=1.1.0 created=1 changed=2 removed=3",
			},
		},
		"each object of an upgrade": {
			outcome: Outcome{Observed: before, Target: to("1.1.0"), Applied: &installation.Result{
				Changes: map[object.Key]object.Change{
					settings: object.Updated, service: object.Updated, keyOf("Role", "n", "r"): object.Created,
					keyOf("Role", "n", "old"): object.Deleted, keyOf("Role", "n", "same"): object.Unchanged,
				},
				Differences: map[object.Key]object.Difference{
					settings:                {Fields: []string{"data.a", "metadata.ownerReferences"}, More: 1},
					service:                 {Replaced: true, Fields: []string{"spec.clusterIP"}},
					keyOf("Role", "n", "r"): {Missing: true},
				},
				Certified: map[object.Key][]object.Difference{keyOf("Secret", "n", "c"): {{Fields: []string{"data.tls.key"}}}},
				Void:      map[object.Key]object.Difference{keyOf("Role", "n", "same"): {Fields: []string{"rules"}}},
			}},
			want: []string{
				"deleted object={Role n old}",
				"replaced object={Service n s} fields=spec.clusterIP",
				"changed object={ConfigMap n settings} fields=data.a, metadata.ownerReferences and 1 more",
				"created object={Role n r}",
				"changed object={Secret n c} fields=data.tls.key",
				"a patch changed nothing object={Role n same} fields=rules",
				"upgraded from=1.0.0 bundle=p.v1.1.0 version=1.1.0 created=1 changed=2 removed=1",
			},
		},
		"installed, and then something else went wrong": {
			outcome: Outcome{Target: to("1.0.0"), Applied: result(4, 0, 0), Stage: StageObserve, Err: &resolve.Error{}},
			want:    []string{"installed bundle=p.v1.0.0 version=1.0.0 created=4 changed=0 removed=0"},
		},
		"repaired": {
			outcome: Outcome{Observed: before, Repair: repair(map[object.Key]object.Difference{
				service:  {Missing: true},
				settings: {Fields: []string{"data.a", "data.b"}, Managers: []string{"kubectl-edit"}},
			})},
			want: []string{
				"repaired object={ConfigMap n settings} missing=false fields=data.a, data.b writtenBy=\"kubectl-edit\"",
				"repaired object={Service n s} missing=true",
			},
		},
		"a certificate was renewed": {
			outcome: Outcome{Observed: before, Repair: certified(
				repair(map[object.Key]object.Difference{settings: {}}), map[object.Key][]object.Difference{settings: {{Fields: []string{"data.next"}}, {Fields: []string{"data.tls.crt"}}}},
			)},
			want: []string{
				"changed object={ConfigMap n settings} fields=data.next",
				"changed object={ConfigMap n settings} fields=data.tls.crt",
			},
		},
		"a repair that changed nothing": {
			outcome: Outcome{Observed: before, Repair: installation.Result{
				Changes: map[object.Key]object.Change{settings: object.Unchanged},
				Void:    map[object.Key]object.Difference{settings: {Fields: []string{"data"}}},
			}},
		},
		"taken over": {
			outcome: Outcome{Observed: before, Repair: repair(map[object.Key]object.Difference{
				service:  {OnlyOwners: true, Fields: []string{"metadata.ownerReferences"}},
				settings: {OnlyOwners: true, Fields: []string{"metadata.ownerReferences"}},
			})},
			want: []string{
				"changed object={ConfigMap n settings} fields=metadata.ownerReferences",
				"changed object={Service n s} fields=metadata.ownerReferences",
				"took over objects=2",
			},
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if diff := cmp.Diff(tc.want, linesOf(changesOf(tc.outcome))); diff != "" {
				t.Errorf("lines (-want +got):\n%s", diff)
			}
		})
	}
}

func linesOf(lines []line) []string {
	var texts []string
	for _, line := range lines {
		text := line.text
		for i := 0; i < len(line.values); i += 2 {
			text += fmt.Sprintf(" %s=%v", line.values[i], line.values[i+1])
		}
		texts = append(texts, text)
	}
	return texts
}

func TestLoggedRepairsAreBounded(t *testing.T) {
	t.Parallel()
	fields := make([]string, 100)
	for i := range fields {
		fields[i] = fmt.Sprintf("data.%03d\n%s", i, strings.Repeat("x", 90))
	}
	repair := installation.Result{Changes: map[object.Key]object.Change{}, Differences: map[object.Key]object.Difference{}}
	for i := range maxLogged + 5 {
		key := keyOf("ConfigMap", "n", strconv.Itoa(i))
		repair.Changes[key], repair.Differences[key] = object.Updated, object.Difference{Fields: fields, Managers: fields}
	}
	lines := linesOf(changesOf(Outcome{Repair: repair}))
	if len(lines) != maxLogged+1 || lines[maxLogged] != "repaired more objects=5" {
		t.Errorf("%d lines, the last of which is %q", len(lines), lines[len(lines)-1])
	}
	if len(lines[0]) > 2*maxLoggedName+100 || strings.Contains(lines[0], "\n") {
		t.Errorf("%q", lines[0])
	}
}

func TestLoggedWritesAreBounded(t *testing.T) {
	t.Parallel()
	applied := installation.Result{Changes: map[object.Key]object.Change{}, Differences: map[object.Key]object.Difference{}}
	for i := range maxLogged + 5 {
		key := keyOf("ConfigMap", "n", strconv.Itoa(i))
		applied.Changes[key], applied.Differences[key] = object.Created, object.Difference{Missing: true}
	}
	lines := linesOf(changesOf(Outcome{Applied: &applied}))
	if len(lines) != maxLogged+2 || lines[maxLogged] != "wrote more objects=5" {
		t.Errorf("%d lines, the last of which are %q", len(lines), lines[maxLogged:])
	}
}

// TestLoggedReasons: what stands in the way is logged once, whatever else changes
// meanwhile; and again when it has been out of the way.
func TestLoggedReasons(t *testing.T) {
	t.Parallel()
	target := Target{Action: Upgrade, Bundle: identity("1.1.0")}
	refused := Outcome{Target: target, Stage: StageApply, Err: errors.New("password=x at https://user:pa55@registry.test/x?token=y")}
	meanwhile := refused
	meanwhile.Workloads = []health.Workload{{Key: keyOf("Deployment", "", "d"), Reason: "1 of 2 replicas"}}
	another := refused
	another.Err = errors.New("boom")
	waits := Outcome{Target: target, Pending: &PendingError{Bundle: identity("1.1.0"), Manual: true}}
	steps := []struct {
		does    string
		outcome Outcome
		want    []string
	}{
		{"nothing", Outcome{Target: Target{Action: Keep}}, nil},
		{"waits for approval", waits, []string{"waits for approval"}},
		{"still waits", waits, nil},
		{"is refused", refused, []string{"not as wanted"}},
		{"is still refused", refused, nil},
		{"is refused while a workload changes", meanwhile, nil},
		{"fails for another reason", another, []string{"not as wanted"}},
		{"is installed", Outcome{Target: target, Applied: &installation.Result{}}, nil},
		{"fails again", another, []string{"not as wanted"}},
	}
	reconciler := &Reconciler{cohorts: newCohorts()}
	for _, step := range steps {
		var got []string
		logger := funcr.NewJSON(func(line string) {
			if strings.Contains(line, "pa55") || strings.Contains(line, "token") {
				t.Errorf("%s: a secret is in %s", step.does, line)
			}
			got = append(got, messageIn(t, line))
		}, funcr.Options{})
		reconciler.logReason(log.IntoContext(t.Context(), logger), "x", step.outcome, membership{size: 1})
		if diff := cmp.Diff(step.want, got); diff != "" {
			t.Errorf("%s: logged at V(0) (-want +got):\n%s", step.does, diff)
		}
	}
}

// TestLoggedReasonsThatManyShare: one reason of a thousand extensions has few lines, which
// say how many there are.
func TestLoggedReasonsThatManyShare(t *testing.T) {
	t.Parallel()
	reconciler := &Reconciler{cohorts: newCohorts()}
	var got []string
	logger := funcr.NewJSON(func(line string) {
		var entry struct {
			Extensions int `json:"extensions"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Fatal(err)
		}
		got = append(got, fmt.Sprint(entry.Extensions))
	}, funcr.Options{})
	for range 3 {
		for i := range 1000 {
			name := fmt.Sprintf("e-%d", i)
			outcome := failingFor(name, StageApply, "trying to create Service %s: range is full")
			reconciler.logReason(log.IntoContext(t.Context(), logger), name, outcome, reconciler.cohorts.met(name, attempt{cause: commonCauseOf(outcome), retried: true}))
		}
	}
	if want := "0 2 4 8 16 32 64 128 256 512"; strings.Join(got, " ") != want {
		t.Errorf("lines at V(0) tell of %v extensions, want %s, where 0 is one", got, want)
	}
}

// TestTheLastThatFailsIsLogged although the log told of others of its cohort before.
func TestTheLastThatFailsIsLogged(t *testing.T) {
	t.Parallel()
	reconciler := &Reconciler{cohorts: newCohorts()}
	logged := 0
	logger := funcr.NewJSON(func(string) { logged++ }, funcr.Options{})
	fail := func(name string) {
		outcome := failingFor(name, StageApply, "trying to create Service %s: range is full")
		member := reconciler.cohorts.met(name, attempt{cause: commonCauseOf(outcome), retried: true})
		reconciler.logReason(log.IntoContext(t.Context(), logger), name, outcome, member)
	}
	for _, name := range []string{"a", "b", "c"} {
		fail(name)
	}
	if logged != 2 {
		t.Errorf("%d lines of three that fail, want 2", logged)
	}
	reconciler.cohorts.forget("a")
	reconciler.cohorts.forget("b")
	fail("c")
	fail("c")
	if logged != 3 {
		t.Errorf("%d lines of the one that is left, want 1", logged-2)
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
