package preview

import (
	"fmt"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// TestHooksThatWouldRun: those of the operation, in their order.
func TestHooksThatWouldRun(t *testing.T) {
	t.Parallel()
	var hooks []hook.Hook
	for _, one := range []string{
		`{kind: Job, metadata: {name: late, namespace: ns, annotations: {helm.sh/hook: "post-install,post-upgrade"}}}`,
		`{kind: Job, metadata: {name: migrate, namespace: ns, annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "5"}}}`,
		`{kind: ServiceAccount, metadata: {name: migrator, namespace: ns, annotations: {helm.sh/hook: pre-install}}}`,
		`{kind: Pod, metadata: {name: probe, namespace: ns, annotations: {helm.sh/hook: test}}}`,
		`{kind: Job, metadata: {name: leave, namespace: ns, annotations: {helm.sh/hook: "pre-delete,pre-rollback"}}}`,
	} {
		read, err := hook.Of(parse(t, one))
		if err != nil {
			t.Fatal(err)
		}
		hooks = append(hooks, read)
	}
	for name, tc := range map[string]struct {
		installed *Bundle
		hooks     []hook.Hook
		want      []string
	}{
		"an installation": {nil, hooks, []string{
			`pre-install: ServiceAccount "migrator" in namespace "ns"`, `pre-install: Job "migrate" in namespace "ns"`, `post-install: Job "late" in namespace "ns"`,
		}},
		"an upgrade": {&Bundle{}, hooks, []string{`pre-upgrade: Job "migrate" in namespace "ns"`, `post-upgrade: Job "late" in namespace "ns"`}},
		"no chart":   {nil, nil, []string{}},
	} {
		if diff := cmp.Diff(tc.want, Make(Facts{Installed: tc.installed, Hooks: tc.hooks}).Hooks); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}

// TestHooksOfWhatWasBegun: those that have succeeded do not run again, and the one that is due is
// waited for, or in the way.
func TestHooksOfWhatWasBegun(t *testing.T) {
	t.Parallel()
	hooks := []hook.Hook{
		read(t, `{kind: Job, metadata: {name: first, annotations: {helm.sh/hook: pre-upgrade}}}`),
		read(t, `{kind: Job, metadata: {name: second, annotations: {helm.sh/hook: pre-upgrade, helm.sh/hook-weight: "1"}}}`),
		read(t, `{kind: Job, metadata: {name: late, annotations: {helm.sh/hook: post-upgrade}}}`),
	}
	before := hook.Progress{Operation: hook.Upgrade, Done: 1}
	failed, after := before.Failed(time.Now(), "it has no room"), hook.Progress{Operation: hook.Upgrade, After: true}
	lateFailed, ended := after.Failed(time.Now(), "it has no room"), hook.Progress{Operation: hook.Upgrade, Done: 7}
	const next = "; see the log of its pods, and mend what it needs; it is run again every ten minutes, or within one if it is deleted"
	for name, tc := range map[string]struct {
		facts            Facts
		hooks, obstacles []string
		waits            string
	}{
		"at rest":       {facts: Facts{IsInstalled: true}, hooks: []string{}, obstacles: []string{}},
		"before, runs":  {Facts{Progress: &before}, []string{`pre-upgrade: Job "second"`, `post-upgrade: Job "late"`}, []string{}, `the pre-upgrade hook Job "second", which is under way`},
		"before, other": {Facts{Progress: &before, Waits: "approval"}, []string{`pre-upgrade: Job "second"`, `post-upgrade: Job "late"`}, []string{}, `approval; the pre-upgrade hook Job "second", which is under way`},
		"before, fails": {Facts{Progress: &failed}, []string{`pre-upgrade: Job "second"`, `post-upgrade: Job "late"`}, []string{`the pre-upgrade hook Job "second" has failed: it has no room` + next}, ""},
		"after, runs":   {Facts{IsInstalled: true, Progress: &after}, []string{`post-upgrade: Job "late"`}, []string{}, `the post-upgrade hook Job "late", which is under way`},
		"after, fails":  {Facts{IsInstalled: true, Progress: &lateFailed}, []string{`post-upgrade: Job "late"`}, []string{`the post-upgrade hook Job "late" has failed: it has no room` + next}, ""},
		"none is left":  {Facts{Progress: &ended}, []string{`post-upgrade: Job "late"`}, []string{}, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tc.facts.Hooks, tc.facts.Installed = hooks, &Bundle{}
			made := Make(tc.facts)
			for _, diff := range []string{cmp.Diff(tc.hooks, made.Hooks), cmp.Diff(tc.obstacles, made.Obstacles), cmp.Diff(tc.waits, made.Waits)} {
				if diff != "" {
					t.Errorf("(-want +got):\n%s", diff)
				}
			}
		})
	}
}

// TestHooksInAPreviewAreBounded: charts have many.
func TestHooksInAPreviewAreBounded(t *testing.T) {
	t.Parallel()
	testkit.WithoutRace(t)
	var hooks []hook.Hook
	for i := range 2 * maxLines {
		read, err := hook.Of(parse(t, fmt.Sprintf(`{kind: Job, metadata: {name: "j%d", annotations: {helm.sh/hook: pre-install}}}`, i)))
		if err != nil {
			t.Fatal(err)
		}
		hooks = append(hooks, read)
	}
	if got := Make(Facts{Hooks: hooks}).Hooks; len(got) > maxLines {
		t.Errorf("%d hooks are listed", len(got))
	}
}
