package applier_test

import (
	"errors"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"

	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/preflight"
)

// TestHooksGivenUp: the hook of 1.1 has failed, and 1.0 is wanted again, of which nothing was touched. Neither is it
// applied once more, with hooks of its own, nor counts what 1.1 would have given as given.
func TestHooksGivenUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-given-up")
	f.applyDesired(t, f.withHooks(t, "1.0.0", f.hookConfigMap("settings", "pre-upgrade", "")))
	rights := []*unstructured.Unstructured{secretReader("operator"), bindingTo("operator", f.owner.Namespace)}
	second := f.withHooks(t, "1.1.0", f.hookPod("migrate", "pre-upgrade", ""))
	second.Objects = append(second.Objects, rights...)
	second.Preflight.Growth = preflight.Growth{Approve: true, Approved: "1.1.0"}
	waits(t, f.tries(t, second), hook.PreUpgrade, "migrate", false)
	f.ends(t, "migrate", 1)
	hasFailed(t, f.tries(t, second), hook.PreUpgrade, "migrate")
	eventually(t, "the hooks to be given up", func() bool {
		return f.applier.AbandonHooks(t.Context(), f.owner, second.HookDeadline) == nil
	})
	for _, process := range []string{"the same process", "the next process"} {
		if state := f.observe(t); state.Unfinished || state.HooksWait || installed(state) != "1.0.0" {
			t.Errorf("%s: the state is %+v", process, state)
		}
		f.restart(t)
	}
	next := f.withHooks(t, "1.2.0")
	next.Objects, next.Preflight = append(next.Objects, rights...), second.Preflight
	if err := f.tries(t, next); !errors.As(err, new(*preflight.ApprovalError)) {
		t.Errorf("err = %v, and rights are given that nobody has agreed to for 1.2", err)
	}
	// What was given up begins with its first hook.
	waits(t, f.untilGone(t, second), hook.PreUpgrade, "migrate", false)
	f.ends(t, "migrate", 0)
	f.applyDesired(t, second)
}

// TestContentIsNoHookToGiveUp: 1.1 has as a hook what 1.0 has as content, which is refused, and 1.0 is wanted again.
// The content is no hook that runs, and stays.
func TestContentIsNoHookToGiveUp(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-content-given-up")
	f.apply(t, "1.0.0", idlePod("worker"), configMap("content", "1.0.0"))
	before := f.pod(t, "worker")
	second := f.withHooks(t, "1.1.0", f.hookPod("worker", "pre-upgrade", ""))
	hasFailed(t, f.tries(t, second), hook.PreUpgrade, "worker")
	err := f.applier.AbandonHooks(t.Context(), f.owner, second.HookDeadline)
	if now := f.pod(t, "worker"); now == nil || now.UID != before.UID || now.DeletionTimestamp != nil {
		t.Errorf("err = %v, and the content is %+v", err, now)
	}
	if state := f.observe(t); state.Unfinished {
		t.Errorf("the state is %+v", state)
	}
}

// TestForgedRuns: whoever may create objects in the namespace knows what those of hooks are annotated with, as they
// have seen some, and the UID of the extension. What they make is no run of a hook, and is not what a hook works with.
func TestForgedRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-forged-runs")
	yes := true
	forged := func(name, run string) metav1.ObjectMeta {
		return metav1.ObjectMeta{
			Namespace: f.owner.Namespace, Name: name,
			OwnerReferences: []metav1.OwnerReference{{APIVersion: "olm.operatorframework.io/v1", Kind: "ClusterExtension", Name: f.owner.Name, UID: f.owner.UID, Controller: &yes}},
			Annotations:     map[string]string{"olm.operatorframework.io/hook-run": run},
		}
	}
	pod := func(name, run string) *corev1.Pod {
		return &corev1.Pod{ObjectMeta: forged(name, run), Spec: corev1.PodSpec{
			RestartPolicy: corev1.RestartPolicyNever, ServiceAccountName: account, Containers: []corev1.Container{{Name: "forged", Image: "registry.test/none"}},
		}}
	}
	create(t, &corev1.ConfigMap{ObjectMeta: forged("script", string(f.owner.UID)+"/1/pre-install/0"), Data: map[string]string{"key": "of a stranger"}})
	create(t, pod("first", string(f.owner.UID)+"/1/pre-install/1"))
	f.ends(t, "first", 0)
	desired := f.withHooks(
		t, "1.0.0",
		f.hookConfigMap("script", "pre-install", "hook-weight=-1"), f.hookPod("first", "pre-install", ""), f.hookPod("second", "pre-install", "hook-weight=1"),
	)
	runs := func(name string) *corev1.Pod {
		t.Helper()
		err := f.untilGone(t, desired)
		if err == nil {
			t.Fatalf("installed, and %s was never run", name)
		}
		waits(t, err, hook.PreInstall, name, false)
		pod := f.pod(t, name)
		if pod.Spec.Containers[0].Name != "c" {
			t.Errorf("the hook is %+v", pod)
		}
		return pod
	}
	first := runs("first")
	if script := f.live(t, "script"); script.Data["key"] != "v" {
		t.Errorf("the hook works with what is %v", script.Data)
	}
	create(t, pod("second", strings.Replace(first.Annotations["olm.operatorframework.io/hook-run"], "/pre-install/1", "/pre-install/2", 1)))
	f.ends(t, "second", 0)
	f.ends(t, "first", 0)
	runs("second")
}

// TestHookThatBecameContent: 1.0 has a hook that 1.1 has as content, and 1.2 as a hook again. By then it is an object
// of what is installed.
func TestHookThatBecameContent(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-to-content")
	f.applyDesired(t, f.withHooks(t, "1.0.0", f.hookConfigMap("settings", "pre-install", "")))
	second := f.withHooks(t, "1.1.0")
	second.Objects = append(second.Objects, configMap("settings", "of 1.1"))
	f.applyDesired(t, second)
	before := f.live(t, "settings")
	err := f.untilGone(t, f.withHooks(t, "1.2.0", f.hookConfigMap("settings", "pre-upgrade", "")))
	hasFailed(t, err, hook.PreUpgrade, "settings")
	if now := f.live(t, "settings"); now == nil || now.UID != before.UID {
		t.Errorf("content is deleted: %+v", now)
	}
}
