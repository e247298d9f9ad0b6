package hook

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
)

const (
	jobText = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: j}\nspec: {%s}\n"
	podText = "apiVersion: v1\nkind: Pod\nmetadata: {name: p}\nspec: {%s}\n"
)

func TestBounded(t *testing.T) {
	t.Parallel()
	const configMap = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\nspec: {activeDeadlineSeconds: 9000, ttlSecondsAfterFinished: 0}\n"
	const others = "apiVersion: others.test/v1\nkind: Job\nmetadata: {name: j}\nspec: {activeDeadlineSeconds: 9000}\n"
	for name, tc := range map[string]struct{ reason, text, want string }{
		"a Job without a deadline": {text: fmt.Sprintf(jobText, ""), want: fmt.Sprintf(jobText, "activeDeadlineSeconds: 600")},
		"a Job with a longer one":  {text: fmt.Sprintf(jobText, "activeDeadlineSeconds: 601"), want: fmt.Sprintf(jobText, "activeDeadlineSeconds: 600")},
		"a Job with a shorter one": {text: fmt.Sprintf(jobText, "activeDeadlineSeconds: 5"), want: fmt.Sprintf(jobText, "activeDeadlineSeconds: 5")},
		"a Job that removes itself": {
			reason: "what it has come to has to be seen",
			text:   fmt.Sprintf(jobText, "activeDeadlineSeconds: 5, ttlSecondsAfterFinished: 0"),
			want:   fmt.Sprintf(jobText, "activeDeadlineSeconds: 5, ttlSecondsAfterFinished: 3600"),
		},
		"a Job that removes itself late": {
			text: fmt.Sprintf(jobText, "activeDeadlineSeconds: 5, ttlSecondsAfterFinished: 86400"),
			want: fmt.Sprintf(jobText, "activeDeadlineSeconds: 5, ttlSecondsAfterFinished: 86400"),
		},
		"a Job with words for numbers": {
			reason: "the API server says what is wrong",
			text:   fmt.Sprintf(jobText, `activeDeadlineSeconds: "x", ttlSecondsAfterFinished: []`), want: fmt.Sprintf(jobText, `activeDeadlineSeconds: "x", ttlSecondsAfterFinished: []`),
		},
		"a Pod":             {text: fmt.Sprintf(podText, ""), want: fmt.Sprintf(podText, "activeDeadlineSeconds: 600")},
		"what ends at once": {text: configMap, want: configMap},
		"a Job of others":   {reason: "it is waited for by nobody", text: others, want: others},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			given := objectOf(t, tc.text)
			got := Bounded(given, 10*time.Minute)
			if diff := cmp.Diff(objectOf(t, tc.want), got); diff != "" {
				t.Errorf("%s (-want +got):\n%s", tc.reason, diff)
			}
			if diff := cmp.Diff(objectOf(t, tc.text), given); diff != "" {
				t.Errorf("the given object was changed:\n%s", diff)
			}
		})
	}
}

func TestStateOf(t *testing.T) {
	t.Parallel()
	const deadline = 10 * time.Minute
	made := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	condition := func(conditions ...string) string {
		return fmt.Sprintf(jobText, "") + "status: {conditions: [" + strings.Join(conditions, ", ") + "]}\n"
	}
	pod := func(status string) string { return fmt.Sprintf(podText, "") + "status: {" + status + "}\n" }
	for name, tc := range map[string]struct {
		reason, text string
		after        time.Duration
		want         State
		why          string
	}{
		"a Job that begins":        {text: fmt.Sprintf(jobText, "")},
		"a Job that has completed": {text: condition(`{type: SuccessCriteriaMet, status: "True"}`, `{type: Complete, status: "True"}`), want: HasSucceeded},
		"a Job that has failed": {
			text: condition(`{type: Failed, status: "True", reason: DeadlineExceeded, message: "Job was active\nfor too long"}`),
			want: HasFailed, why: "DeadlineExceeded: Job was active for too long",
		},
		"a Job that has not failed": {reason: "conditions can be false", text: condition(`{type: Failed, status: "False"}`)},
		"a Job that is about to":    {reason: "its pods are still going", text: condition(`{type: FailureTarget, status: "True"}`)},
		"a Job that will complete":  {reason: "likewise", text: condition(`{type: SuccessCriteriaMet, status: "True"}`)},
		"a Job that is suspended":   {text: condition(`{type: Suspended, status: "True"}`), after: deadline + overtime},
		"a Job that is suspended for ever": {
			reason: "its deadline does not run meanwhile",
			text:   condition(`{type: Suspended, status: "True"}`), after: deadline + overtime + time.Second,
			want: HasFailed, why: "it has not ended within 10m0s",
		},
		"a Job without a reason":      {text: condition(`{type: Failed, status: "True"}`), want: HasFailed, why: "it does not say why"},
		"a Job with half of one":      {text: condition(`{type: Failed, status: "True", message: "m"}`), want: HasFailed, why: "m"},
		"a Job with an odd status":    {text: fmt.Sprintf(jobText, "") + "status: {conditions: 7}\n"},
		"a late Job that has made it": {text: condition(`{type: Complete, status: "True"}`), after: time.Hour, want: HasSucceeded},
		"a Pod that runs":             {text: pod("phase: Running")},
		"a Pod without a phase":       {text: pod("")},
		"a Pod that has succeeded":    {text: pod("phase: Succeeded"), want: HasSucceeded},
		"a Pod that has failed": {
			text: pod("phase: Failed, containerStatuses: [{name: a, state: {terminated: {exitCode: 0}}}, {name: b, state: {running: {}}}, {name: c, state: {terminated: {exitCode: 3}}}]"),
			want: HasFailed, why: `container "c" has ended with 3`,
		},
		"a Pod that was evicted": {text: pod("phase: Failed, reason: Evicted"), want: HasFailed, why: "Evicted"},
		"a Pod that runs on":     {text: pod("phase: Pending"), after: deadline + overtime + time.Second, want: HasFailed, why: "it has not ended within 10m0s"},
		"what is there has run":  {text: "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: c}\n", after: time.Hour, want: HasSucceeded},
		"a Job of others":        {text: "apiVersion: others.test/v1\nkind: Job\nstatus: {conditions: [{type: Failed, status: \"True\"}]}\n", want: HasSucceeded},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			live := objectOf(t, tc.text)
			live.SetCreationTimestamp(metav1.NewTime(made))
			state, why := StateOf(live, deadline, made.Add(tc.after))
			if state != tc.want || why != tc.why {
				t.Errorf("it is %d because %q, want %d because %q: %s", state, why, tc.want, tc.why, tc.reason)
			}
		})
	}
}

// TestWhyIsBounded: a status is written by whoever may write it.
func TestWhyIsBounded(t *testing.T) {
	t.Parallel()
	long := strings.Repeat("long\n", 1<<16)
	_, why := StateOf(objectOf(t, fmt.Sprintf(jobText, "")+fmt.Sprintf(`status: {conditions: [{type: Failed, status: "True", reason: %q, message: %[1]q}]}`, long)), time.Minute, time.Time{})
	if len(why) > maxWhy || len(why) < maxWhy/2 || strings.Contains(why, "\n") {
		t.Errorf("%d bytes are told: %q", len(why), why)
	}
	_, why = StateOf(objectOf(t, fmt.Sprintf(podText, "")+fmt.Sprintf(`status: {phase: Failed, containerStatuses: [{name: %q, state: {terminated: {exitCode: 3}}}]}`, long)), time.Minute, time.Time{})
	if len(why) > maxWhy {
		t.Errorf("%d bytes are told: %q", len(why), why)
	}
}

func TestNext(t *testing.T) {
	t.Parallel()
	for since, want := range map[time.Duration]time.Duration{
		-time.Hour: time.Second, 0: time.Second, 10 * time.Second: time.Second, time.Minute: 6 * time.Second, 150 * time.Second: 15 * time.Second, time.Hour: 15 * time.Second,
	} {
		if got := Next(since); got != want {
			t.Errorf("after %s the next look is in %s, want %s", since, got, want)
		}
	}
}
