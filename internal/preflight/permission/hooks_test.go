package permission

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/clusterextensions/operator-controller/internal/hook"
)

// hooksOf are hooks at events.
func hooksOf(t *testing.T, events string, documents ...string) []hook.Hook {
	t.Helper()
	read := objects(t, documents...)
	for _, object := range read {
		object.SetAnnotations(map[string]string{"helm.sh/hook": events})
	}
	hooks, err := hook.All(read)
	if err != nil {
		t.Fatal(err)
	}
	return hooks
}

const (
	aJob = "apiVersion: batch/v1\nkind: Job\nmetadata: {name: migrate}"
	aPod = "apiVersion: v1\nkind: Pod\nmetadata: {name: probe, namespace: ns2}"
)

func TestNeedsOfHooks(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		reason      string
		events      string
		hooks       []string
		wanted      []string
		onHooks     []string
		logs        []string
		escalations int
	}{
		"what ends at once": {
			reason: "nobody looks for its log", events: "pre-install", hooks: []string{aConfigMap},
			onHooks: []string{
				`Namespace:"ns1" APIGroups:[] Resources:[configmaps] Verbs:[create]`,
				`Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[settings] Verbs:[delete,get]`,
			},
		},
		"a Job": {
			events: "pre-install,pre-upgrade", hooks: []string{aJob},
			onHooks: []string{
				`Namespace:"ns1" APIGroups:[batch] Resources:[jobs] Verbs:[create]`,
				`Namespace:"ns1" APIGroups:[batch] Resources:[jobs] ResourceNames:[migrate] Verbs:[delete,get]`,
			},
			logs: []string{
				`Namespace:"ns1" APIGroups:[] Resources:[pods/log] Verbs:[get]`,
				`Namespace:"ns1" APIGroups:[] Resources:[pods] Verbs:[list]`,
			},
		},
		"a Pod elsewhere": {
			events: "pre-delete", hooks: []string{aPod},
			onHooks: []string{
				`Namespace:"ns2" APIGroups:[] Resources:[pods] Verbs:[create]`,
				`Namespace:"ns2" APIGroups:[] Resources:[pods] ResourceNames:[probe] Verbs:[delete,get]`,
			},
			logs: []string{
				`Namespace:"ns2" APIGroups:[] Resources:[pods/log] Verbs:[get]`,
				`Namespace:"ns2" APIGroups:[] Resources:[pods] Verbs:[list]`,
			},
		},
		"after the deletion": {
			reason: "the content is deleted before", events: "post-delete", hooks: []string{aJob}, wanted: []string{aConfigMap},
			onHooks: []string{
				`Namespace:"ns1" APIGroups:[] Resources:[configmaps] ResourceNames:[settings] Verbs:[delete,get]`,
				`Namespace:"ns1" APIGroups:[batch] Resources:[jobs] Verbs:[create]`,
				`Namespace:"ns1" APIGroups:[batch] Resources:[jobs] ResourceNames:[migrate] Verbs:[delete,get]`,
			},
			logs: []string{
				`Namespace:"ns1" APIGroups:[] Resources:[pods/log] Verbs:[get]`,
				`Namespace:"ns1" APIGroups:[] Resources:[pods] Verbs:[list]`,
			},
		},
		"a Role": {
			reason: "nobody can grant what they do not hold", events: "pre-install", hooks: []string{aRole},
			onHooks: []string{
				`Namespace:"ns2" APIGroups:[rbac.authorization.k8s.io] Resources:[roles] Verbs:[create]`,
				`Namespace:"ns2" APIGroups:[rbac.authorization.k8s.io] Resources:[roles] ResourceNames:[reader] Verbs:[delete,get]`,
			},
			escalations: 1,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			content := Content{Hooks: hooksOf(t, test.events, test.hooks...)}
			if len(test.wanted) > 0 {
				content.Wanted = objects(t, test.wanted...)
			}
			needs := needsOf(t, content)
			if diff := cmp.Diff(sorted(test.onHooks), sorted(lines(needs.Hooks))); diff != "" {
				t.Errorf("to run hooks (-want +got): %s\n%s", test.reason, diff)
			}
			if diff := cmp.Diff(sorted(test.logs), sorted(lines(needs.Logs))); diff != "" {
				t.Errorf("to tell of them (-want +got): %s\n%s", test.reason, diff)
			}
			if len(needs.Escalations) != test.escalations {
				t.Errorf("%d escalations, want %d: %s", len(needs.Escalations), test.escalations, test.reason)
			}
			checkGrants(t, needs, who)
		})
	}
}

func sorted(texts []string) []string { return slices.Sorted(slices.Values(texts)) }

// TestMissingForHooks leaves out one right after the other of those that hooks take: each is named. What
// it takes to tell of them is not.
func TestMissingForHooks(t *testing.T) {
	t.Parallel()
	needs := needsOf(t, Content{Wanted: objects(t, aConfigMap), Hooks: hooksOf(t, "pre-install,post-delete", aJob, aPod)})
	all := rightsOf(needs.managed())
	for i, left := range all {
		held := merged(slices.Delete(slices.Clone(all), i, i+1))
		found := lines(Missing(needs, newHeld(held)))
		if len(found) != 1 || !strings.Contains(found[0], "["+left.verb+"]") || !strings.Contains(found[0], "["+left.resource+"]") {
			t.Errorf("without %+v %q are missing", left, found)
		}
	}
	if found := Missing(needs, newHeld(merged(all))); len(found) > 0 {
		t.Errorf("with all of them %q are missing", lines(found))
	}
}

// TestGrowthByHooks: what a Role gives that is a hook is given like that of any other. It is not given
// for good: a hook may be deleted when it has succeeded, and one for a deletion was never there.
func TestGrowthByHooks(t *testing.T) {
	t.Parallel()
	bound := bindingTo("ns2", "Role", "reader", "op")
	content := objects(t, aRole, bound)
	gain := []string{`ServiceAccount "ns1/op": Namespace:"ns2" APIGroups:[""] Resources:[secrets] Verbs:[get,list]`}
	roles := hooksOf(t, "pre-install,pre-upgrade", aRole, bound)
	deletion := hooksOf(t, "pre-delete,test", aRole, bound)
	atTests := hook.WithoutTests(hooksOf(t, "test,pre-rollback", aRole, bound))
	for name, test := range map[string]struct {
		content Content
		want    []string
	}{
		"a hook gives for the first time":          {Content{Hooks: roles}, gain},
		"a hook gives what it gave before":         {Content{Hooks: roles, HooksBefore: roles}, []string{}},
		"an object gives what a hook has":          {Content{Wanted: content, HooksBefore: roles}, gain},
		"as well as the hook":                      {Content{Wanted: content, Hooks: roles, HooksBefore: roles}, gain},
		"a hook gives what an object has":          {Content{Hooks: roles, Before: content}, []string{}},
		"a hook binds to a role of the bundle":     {Content{Wanted: objects(t, aRole), Hooks: hooksOf(t, "pre-install", bound)}, gain},
		"a hook of a deletion gives what it gave":  {Content{Hooks: deletion, HooksBefore: deletion}, []string{}},
		"an object gives what a deletion takes":    {Content{Wanted: content, HooksBefore: deletion}, gain},
		"an upgrade takes what a deletion takes":   {Content{Hooks: roles, HooksBefore: deletion}, gain},
		"a deletion takes what an upgrade takes":   {Content{Hooks: deletion, HooksBefore: roles}, []string{}},
		"an object gives what tests take":          {Content{Wanted: content, HooksBefore: atTests}, gain},
		"an object is bound to the role of a hook": {Content{Wanted: content[1:], Hooks: roles[:1], Before: content[1:], HooksBefore: roles[:1]}, []string{}},
	} {
		gains, err := Growth(Guessed, who, test.content)
		if err != nil {
			t.Fatal(err)
		}
		if diff := cmp.Diff(test.want, lines(gains)); diff != "" {
			t.Errorf("%s (-want +got):\n%s", name, diff)
		}
	}
}
