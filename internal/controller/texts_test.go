package controller

import (
	"flag"
	"fmt"
	"maps"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/health"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/applier/plan"
	"github.com/clusterextensions/operator-controller/internal/bundle"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/crdupgrade"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
	"github.com/clusterextensions/operator-controller/internal/resolve"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

var update = flag.Bool("update", false, "write the texts of all situations into docs/troubleshoot.md")

const page = "../../docs/troubleshoot.md"

// told is what people are told of a situation.
type told struct {
	status *ocv1.ClusterExtensionStatus
	event  *transition
}

func tell(s situation) told {
	ext, now := wholeExtension(), time.Unix(1000, 0)
	s.outcome.Owner = object.Owner{Name: ext.Name, Namespace: ext.Spec.Namespace, ServiceAccount: ext.Spec.ServiceAccount.Name}
	if s.minutes > 0 {
		ext.Spec.ProgressDeadlineMinutes = s.minutes
		ext.Status = *statusAt(ext, s.outcome, now)
		now = now.Add(time.Duration(s.minutes) * time.Minute)
	}
	status := statusAt(ext, s.outcome, now)
	return told{status: status, event: transitionOf(&ext.Status, status)}
}

// short are all texts but that of Progressing, by where they stand.
func (t told) short() map[string]string {
	texts := map[string]string{"event": t.event.note}
	for _, condition := range t.status.Conditions {
		switch condition.Type {
		case ocv1.TypeReady, ocv1.TypeAvailable, ocv1.TypeReconciling, ocv1.TypeStalled:
			texts[condition.Type] = condition.Message
		}
	}
	return texts
}

// onPage is the text as the page has it: whole, but for what says the same twice.
func (t told) onPage() string {
	var text strings.Builder
	for _, kind := range []string{ocv1.TypeProgressing, ocv1.TypeReady} {
		condition := meta.FindStatusCondition(t.status.Conditions, kind)
		fmt.Fprintf(&text, "%s=%s %s: %s\n", kind, condition.Status, condition.Reason, condition.Message)
	}
	ready := meta.FindStatusCondition(t.status.Conditions, ocv1.TypeReady)
	available := meta.FindStatusCondition(t.status.Conditions, ocv1.TypeAvailable)
	if available.Status == metav1.ConditionFalse {
		fmt.Fprintf(&text, "%s=%s %s: %s\n", available.Type, available.Status, available.Reason, available.Message)
	}
	for _, kind := range []string{ocv1.TypeReconciling, ocv1.TypeStalled} {
		condition := meta.FindStatusCondition(t.status.Conditions, kind)
		switch {
		case condition == nil:
		case strings.Contains(ready.Message, condition.Message):
			fmt.Fprintf(&text, "%s=%s %s\n", kind, condition.Status, condition.Reason)
		default:
			fmt.Fprintf(&text, "%s=%s %s: %s\n", kind, condition.Status, condition.Reason, condition.Message)
		}
	}
	return text.String()
}

// TestTextsOfSituations holds every text that people read against what is promised
// of it: it is one short line, and the next step is in it.
func TestTextsOfSituations(t *testing.T) {
	t.Parallel()
	for name, s := range situations(t) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := tell(s)
			texts := got.short()
			for where, text := range texts {
				if len(text) > 1000 || strings.Contains(text, "\n") {
					t.Errorf("%s has %d bytes: %s", where, len(text), text)
				}
				if where == ocv1.TypeAvailable && !meta.IsStatusConditionFalse(got.status.Conditions, where) {
					continue // it is about something else
				}
				if !strings.Contains(text, s.next) {
					t.Errorf("%s does not say %q: %s", where, s.next, text)
				}
				for _, jargon := range []string{"namespace ''", "cannot be managed by operator-controller", "operation cannot proceed", "pre-authorization", "[] "} {
					if strings.Contains(text, jargon) {
						t.Errorf("%s has %q in it: %s", where, jargon, text)
					}
				}
			}
			if ready := texts[ocv1.TypeReady]; ready != texts["event"] {
				t.Errorf("the event says %q, and Ready %q", texts["event"], ready)
			}
		})
	}
}

// TestWhoMayNotActIsTold: it is the controller that lacks a right, in the words of each
// version of Kubernetes, and not the ServiceAccount, whatever that is refused.
func TestWhoMayNotActIsTold(t *testing.T) {
	t.Parallel()
	const controller = "system:serviceaccount:olmv1-system:operator-controller-controller-manager"
	for name, tc := range map[string]struct {
		message string
		want    bool
	}{
		"up to 1.35":                    {`serviceaccounts "sa" is forbidden: User "` + controller + `" cannot impersonate resource "serviceaccounts" in API group "" in the namespace "ns"`, true},
		"since 1.36":                    {`selfsubjectrulesreviews.authorization.k8s.io is forbidden: User "` + controller + `" cannot impersonate-on:serviceaccount:create resource "selfsubjectrulesreviews" in API group "authorization.k8s.io" at the cluster scope`, true},
		"a right of the ServiceAccount": {`configmaps "impersonate" is forbidden: User "system:serviceaccount:ns:sa" cannot get resource "configmaps" in API group "" in the namespace "ns"`, false},
		"a bundle that the policy refuses": {`clusterextensions.olm.operatorframework.io "y" is forbidden: ValidatingAdmissionPolicy 'operator-controller-use-of-serviceaccounts' denied request: ` +
			`user "system:serviceaccount:ns:sa" cannot impersonate resource "serviceaccounts" in API group "" with the name "sa"`, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			outcome := failing(StageApply, fmt.Errorf("reading: %w", statusError(http.StatusForbidden, tc.message)))
			const want = "the controller may not act as ServiceAccount "
			if got := summaryOf(outcome); strings.Contains(got, want) != tc.want {
				t.Errorf("%q in it: %t, want %t: %s", want, !tc.want, tc.want, got)
			}
		})
	}
}

// TestPageShowsTexts finds the text of each situation on the page, and no others.
func TestPageShowsTexts(t *testing.T) {
	t.Parallel()
	content, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	wanted := map[string]string{}
	for name, s := range situations(t) {
		wanted[name] = tell(s).onPage()
	}
	if *update {
		if err := os.WriteFile(page, []byte(rewritten(string(content), wanted)), 0o600); err != nil {
			t.Fatal(err)
		}
		return
	}
	shown := map[string]string{}
	for _, section := range sections.FindAllStringSubmatch(string(content), -1) {
		shown[section[1]] = section[2]
	}
	if diff := cmp.Diff(wanted, shown); diff != "" {
		t.Errorf("write the page with -update, and what is to be done by hand (-wanted +shown):\n%s", diff)
	}
}

// sections have a title and right below it the text.
var sections = regexp.MustCompile("(?m)^### (.+)\n\n```text\n((?s:.*?))```\n")

func rewritten(content string, wanted map[string]string) string {
	written := map[string]bool{}
	content = sections.ReplaceAllStringFunc(content, func(section string) string {
		title := sections.FindStringSubmatch(section)[1]
		written[title] = true
		return fmt.Sprintf("### %s\n\n```text\n%s```\n", title, wanted[title])
	})
	for _, title := range slices.Sorted(maps.Keys(wanted)) {
		if !written[title] {
			content += fmt.Sprintf("\n### %s\n\n```text\n%s```\n", title, wanted[title])
		}
	}
	return content
}

// TestTextsAreBounded has very many of everything.
func TestTextsAreBounded(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	long := strings.Repeat("long ", 100)
	var (
		findings   []crdupgrade.Finding
		offenders  []string
		kinds      []string
		problems   []string
		violations []bundle.Violation
		gains      []permission.Gain
		failures   []plan.ObjectFailure
		conflicts  []object.Conflict
		workloads  []health.Workload
	)
	for i := range 1000 {
		name := fmt.Sprint(i, " ", long)
		findings = append(findings, crdupgrade.Finding{CRD: name, Path: name, Check: "type", Detail: name, Advice: "convert it", Kind: crdupgrade.Blocks})
		offenders, kinds, problems = append(offenders, name), append(kinds, name), append(problems, name)
		violations = append(violations, bundle.Violation{File: name, Message: name})
		gains = append(gains, permission.Gain{Subject: "s", Rule: sampleRule("", "", fmt.Sprint("things-", i), "get")})
		failures = append(failures, plan.ObjectFailure{Action: "creating", Object: keyOf("Thing", "", name), Err: forbiddenTo("create")})
		conflicts = append(conflicts, object.Conflict{Object: keyOf("Thing", "", name), Holder: object.Holder{Kind: "Widget", Name: name}})
		workloads = append(workloads, health.Workload{Key: keyOf("Deployment", "", name), Available: metav1.ConditionFalse, Reason: long})
	}
	tests := map[string]situation{
		"rights":      {outcome: upgrading(StageApply, missingRights(1000)), next: "1000 rights are missing"},
		"definitions": {outcome: upgrading(StageApply, &preflight.UnsafeError{Findings: findings, Offenders: offenders}), next: "convert it"},
		"kinds":       {outcome: upgrading(StageApply, &object.UnknownKindsError{Kinds: kinds}), next: "install what provides them"},
		"config":      {outcome: upgrading(StageRender, &bundle.ConfigError{Problems: problems}), next: "and 999 more"},
		"bundle":      {outcome: upgrading(StageRender, &bundle.InvalidError{Violations: violations}), next: "choose another version"},
		"objects":     {outcome: upgrading(StageApply, &plan.ObjectsError{Failures: failures}), next: "998 more; `kubectl extension bundle rbac"},
		"conflicts":   {outcome: upgrading(StageApply, &object.ConflictError{Conflicts: conflicts}), next: "delete that owner"},
		"gains":       {outcome: atRest(Outcome{Pending: &PendingError{Bundle: sampleBundle("1.2.0"), Growth: &preflight.ApprovalError{Version: "1.2.0", Gains: gains}}}), next: `approvedVersion to "1.2.0"`},
		"gains of what waits anyway": {
			outcome: atRest(Outcome{Pending: &PendingError{
				Bundle: sampleBundle("1.2.0"), Manual: true, Growth: &preflight.ApprovalError{Version: "1.2.0", Gains: gains}, Refusal: long,
			}}),
			next: `approvedVersion to "1.2.0"`,
		},
		"a hook": {outcome: upgrading(StageApply, hookFailed(hook.PreUpgrade, strings.Repeat(long, 100))), next: nextHook},
		"a hook that runs": {
			outcome: atRest(Outcome{Hook: &installation.HookUnderwayError{Event: hook.PreUpgrade, Object: keyOf("Job", long, long)}}), next: "pre-upgrade hook",
		},
		"workloads": {outcome: atRest(Outcome{Workloads: workloads}), next: "more"},
		"everything else": {
			outcome: atRest(Outcome{Flapping: kinds, Supply: resolve.Supply{Providers: kinds}, Dependents: kinds, Unwatched: kinds, Remains: RemainsStay, WorkloadsUnseen: true}),
			next:    "`kubectl extension explain clusterextension/sample-operator` tells of each bundle",
		},
	}
	for name, s := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			texts := tell(s).short()
			for where, text := range texts {
				if len(text) > 1000 {
					t.Errorf("%s has %d bytes: %s", where, len(text), text)
				}
			}
			if !strings.Contains(texts[ocv1.TypeReady], s.next) {
				t.Errorf("Ready does not say %q: %s", s.next, texts[ocv1.TypeReady])
			}
		})
	}
	if note := notesOf(kinds).note; len(note) > 1000 || !strings.Contains(note, "more") {
		t.Errorf("the event has %d bytes: %s", len(note), note)
	}
}
