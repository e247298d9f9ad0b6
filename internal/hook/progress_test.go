package hook

import (
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
)

func TestProgress(t *testing.T) {
	t.Parallel()
	zone := time.FixedZone("elsewhere", 3600)
	at := time.Date(2026, 1, 1, 12, 0, 0, 500, zone)
	whole := time.Date(2026, 1, 1, 11, 0, 0, 0, time.UTC)
	begun := Progress{Operation: Upgrade}
	second := Progress{Operation: Upgrade, Done: 1}
	failed := Progress{Operation: Upgrade, Done: 1, FailedAt: &whole, Why: "w"}
	for name, pair := range map[string][2]Progress{
		"succeeded":              {second, begun.Succeeded()},
		"failed":                 {failed, second.Failed(at, "w")},
		"succeeded after all":    {{Operation: Upgrade, Done: 2}, failed.Succeeded()},
		"anew":                   {second, failed.Anew()},
		"given up":               {{Operation: Upgrade, Key: "k", Done: 1, GivenUp: true}, Progress{Operation: Upgrade, Key: "k", Done: 1, Begun: 1}.GiveUp()},
		"after, and failed":      {{Operation: Install, After: true, FailedAt: &whole}, Progress{Operation: Install, After: true}.Failed(at, "")},
		"after, and anew":        {{Operation: Install, After: true, Done: 3}, Progress{Operation: Install, After: true, Done: 3, FailedAt: &whole}.Anew()},
		"after, and one of them": {{Operation: Install, After: true, Done: 1}, Progress{Operation: Install, After: true}.Succeeded()},
	} {
		if diff := cmp.Diff(pair[0], pair[1]); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

func TestMark(t *testing.T) {
	t.Parallel()
	one, other := Begin(Install, false), Begin(Install, false)
	marked := one.Mark("run/1")
	if one.Succeeded().Mark("run/1") != marked || one.Failed(time.Now(), "w").Anew().Mark("run/1") != marked || !strings.HasPrefix(marked, "run/1/") {
		t.Errorf("the mark of a run is %q, and then another one", marked)
	}
	if other.Mark("run/1") == marked || strings.TrimPrefix(one.Mark("run/2"), "run/2") == strings.TrimPrefix(marked, "run/1") {
		t.Errorf("%q is the mark of another run, too", marked)
	}
	if got := (Progress{Operation: Install}).Mark("run/1"); got != "run/1" {
		t.Errorf("without a key, a run is %q", got)
	}
}

func TestEvent(t *testing.T) {
	t.Parallel()
	for event, progress := range map[Event]Progress{
		PreInstall: {Operation: Install}, PostInstall: {Operation: Install, After: true},
		PreUpgrade: {Operation: Upgrade}, PostUpgrade: {Operation: Upgrade, After: true},
		PreDelete: {Operation: Delete}, PostDelete: {Operation: Delete, After: true},
	} {
		if got := progress.Event(); got != event {
			t.Errorf("%+v is about %s, want %s", progress, got, event)
		}
	}
}

func TestRetryIn(t *testing.T) {
	t.Parallel()
	failed := time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)
	for name, tc := range map[string]struct {
		failed *time.Time
		now    time.Time
		want   time.Duration
	}{
		"it has not failed": {nil, failed, 0},
		"just now":          {&failed, failed, retryAfter},
		"a while ago":       {&failed, failed.Add(3 * time.Minute), 7 * time.Minute},
		"long ago":          {&failed, failed.Add(time.Hour), 0},
	} {
		if got := (Progress{FailedAt: tc.failed}).RetryIn(tc.now); got != tc.want {
			t.Errorf("%s: in %s, want %s", name, got, tc.want)
		}
	}
}

func TestEncode(t *testing.T) {
	t.Parallel()
	at := time.Date(2026, 1, 1, 11, 0, 0, 0, time.UTC)
	for _, progress := range []*Progress{
		nil, {Operation: Install}, {Operation: Upgrade, After: true, Done: 7}, {Operation: Delete, FailedAt: &at, Why: "why \"so\"\n"},
	} {
		text, err := Encode(progress)
		if err != nil {
			t.Fatal(err)
		}
		got, err := Decode(text)
		if diff := cmp.Diff(progress, got); err != nil || diff != "" {
			t.Errorf("%q: %v (-want +got):\n%s", text, err, diff)
		}
	}
	for _, text := range []string{"{", "[]", `{"done":"x"}`, `{"operation":"install","done":-1}`, `{"operation":"rollback"}`} {
		if got, err := Decode(text); err == nil || !strings.Contains(err.Error(), "how far hooks have come") {
			t.Errorf("%q is read as %+v, %v", text, got, err)
		}
	}
}

// TestRemedy: nobody is sent to a log that is gone, or told to delete what is not there.
func TestRemedy(t *testing.T) {
	t.Parallel()
	failed := Progress{Operation: Upgrade}.Failed(time.Now(), "boom")
	gone, blocked := failed, failed
	gone.Gone, blocked.Blocked = true, true
	byContent := blocked
	byContent.ByContent = true
	kept, cleared := Hook{Policies: []Policy{BeforeCreation}}, Hook{Policies: []Policy{Failed}}
	for name, test := range map[string]struct {
		progress Progress
		hook     Hook
		want     string
	}{
		"its object is there":            {failed, kept, "see the log of its pods, and mend what it needs; it is run again every ten minutes, or within one if it is deleted"},
		"its policy":                     {failed, cleared, "mend what it needs; its delete policy has had it deleted, with its log; it is run again every ten minutes"},
		"a client deletes it":            {gone, kept, "find the client that deletes it, and stop that client; it is run again every ten minutes"},
		"a client, and its policy would": {gone, cleared, "find the client that deletes it, and stop that client; it is run again every ten minutes"},
		"F26: content exists":            {byContent, kept, "do not delete it, as the installed version uses it; choose a version in which one of the two has another name; it is run again every ten minutes"},
		"another one is there":           {blocked, kept, "it is run again every ten minutes, or within one if what is in its place is deleted"},
		"another one, and its policy":    {blocked, cleared, "it is run again every ten minutes"},
	} {
		if got := test.progress.Remedy(test.hook); got != test.want {
			t.Errorf("%s: %q, want %q", name, got, test.want)
		}
	}
}
