package applier_test

import (
	"context"
	"errors"
	"maps"
	"strings"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/preflight"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// hookAt makes a hook of an object: more are pairs of annotations.
func hookAt(t *testing.T, object *unstructured.Unstructured, events string, more ...string) hook.Hook {
	t.Helper()
	annotations := map[string]string{"helm.sh/hook": events}
	maps.Copy(annotations, object.GetAnnotations())
	for i := 0; i < len(more); i += 2 {
		annotations["helm.sh/"+more[i]] = more[i+1]
	}
	object.SetAnnotations(annotations)
	found, err := hook.Of(object)
	if err != nil {
		t.Fatal(err)
	}
	return found
}

// idlePod is a pod that no node takes.
func idlePod(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod",
		"metadata": map[string]any{"name": name},
		"spec": map[string]any{
			"restartPolicy": "Never", "automountServiceAccountToken": false,
			"nodeSelector": map[string]any{"no": "node"},
			"containers":   []any{map[string]any{"name": "c", "image": "registry.test/none"}},
		},
	}}
}

func (f *fixture) wantingHooks(version string, hooks []hook.Hook, objects ...*unstructured.Unstructured) installation.Desired {
	desired := f.desired(version, objects...)
	desired.Hooks, desired.HookDeadline = hooks, time.Minute
	desired.Digest = "sha256:" + strings.Repeat("0", 60) + strings.ReplaceAll(version, ".", "")
	return desired
}

// endPod says of a pod that it has ended.
func (f *fixture) endPod(t *testing.T, name string, phase corev1.PodPhase) {
	t.Helper()
	pod := f.pod(t, name)
	if pod == nil {
		t.Fatalf("there is no pod %q", name)
	}
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status":{"phase":"`+string(phase)+`"}}`))
	if err := admin.Status().Patch(t.Context(), pod, patch); err != nil {
		t.Fatal(err)
	}
}

func isUnderway(err error) bool {
	_, ok := errors.AsType[*installation.HookUnderwayError](err)
	return ok
}

// TestHookThatWasContent: version 1.1 has as a hook what 1.0 has as content, such as what a migration reads.
// What is installed is repaired while hooks run, and would write over it; so the hook is refused.
func TestHookThatWasContent(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hook-content")
	f.apply(t, "1.0.0", configMap("script", "of 1.0"), configMap("b", "1"))
	hooks := []hook.Hook{hookAt(t, configMap("script", "of 1.1"), "pre-upgrade", "hook-weight", "-1"), hookAt(t, idlePod("migrate"), "pre-upgrade")}
	for range 2 {
		_, err := f.applier.Apply(t.Context(), f.owner, f.wantingHooks("1.1.0", hooks, configMap("b", "2")))
		failed, hasFailed := errors.AsType[*installation.HookFailedError](err)
		if !hasFailed || !strings.Contains(failed.Why, "an object of the installed version has its name") {
			t.Fatalf("err = %v", err)
		}
	}
	if script := f.live(t, "script"); script == nil || script.Data["key"] != "of 1.0" || f.pod(t, "migrate") != nil {
		t.Errorf("the content is %+v", script)
	}
}

// TestOrphanedHooks: an extension is deleted, and all that it has installed is to stay. A hook has
// made a part of that.
func TestOrphanedHooks(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hook-orphans")
	f.applyDesired(t, f.wantingHooks("1.0.0", []hook.Hook{hookAt(t, configMap("password", "made by a hook"), "pre-install")}, configMap("a", "1")))
	f.beginRemoval(t)
	f.restart(t)
	if err := f.applier.Orphan(t.Context(), f.owner); err != nil {
		t.Fatal(err)
	}
	if got := controllers(f.live(t, "a"))[0]; got != "" {
		t.Fatalf("the content belongs to %s", got)
	}
	if got := controllers(f.live(t, "password"))[0]; got != "" {
		t.Error("what the hook has made still belongs to the extension, and goes with it")
	}
}

// TestDeletionHooksOfASecondDeletion: a deletion has run its hooks, and then everything was let go of.
// An extension of the same name takes it over, is deleted too, and has hooks for that.
func TestDeletionHooksOfASecondDeletion(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hook-again")
	f.applyDesired(t, f.wantingHooks("1.0.0", []hook.Hook{hookAt(t, configMap("backup", "of all"), "pre-delete")}, configMap("a", "1")))
	if err := f.applier.RunDeletionHooks(t.Context(), f.owner, hook.PreDelete, time.Minute); err != nil {
		t.Fatal(err)
	}
	if f.live(t, "backup") == nil {
		t.Fatal("no hook has run")
	}
	f.replaceExtension(t, func(*object.Owner) {})
	if state := f.observe(t); state.Installed == nil {
		t.Fatal("nothing was taken over")
	}
	if _, err := f.applier.Repair(t.Context(), f.owner); err != nil {
		t.Fatal(err)
	}
	if err := admin.Delete(t.Context(), f.live(t, "backup")); err != nil {
		t.Fatal(err)
	}
	if err := f.applier.RunDeletionHooks(t.Context(), f.owner, hook.PreDelete, time.Minute); err != nil {
		t.Fatal(err)
	}
	if f.live(t, "backup") == nil {
		t.Error("the hook before the deletion was not run for the second extension")
	}
}

// TestHookThatDeletesItself: a Job may delete itself, or an operator what it has done. It is created
// again with each pass, a second later, with all checks, and never fails.
func TestHookThatDeletesItself(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hook-vanishing")
	desired := f.wantingHooks("1.0.0", []hook.Hook{hookAt(t, idlePod("migrate"), "pre-install")}, configMap("a", "1"))
	created := map[types.UID]bool{}
	var err error
	for range 10 {
		if _, err = f.applier.Apply(t.Context(), f.owner, desired); !isUnderway(err) {
			break
		}
		pod := f.pod(t, "migrate")
		created[pod.UID] = true
		if err := admin.Delete(t.Context(), pod, client.GracePeriodSeconds(0)); err != nil {
			t.Fatal(err)
		}
	}
	if failed, ok := errors.AsType[*installation.HookFailedError](err); !ok || !strings.Contains(failed.Next, "the client that deletes it") {
		t.Errorf("err = %v, want to be told to find the client that deletes it", err)
	}
	if len(created) > 3 {
		t.Errorf("it was run %d times in as many passes, without a rest, and err = %v", len(created), err)
	}
}

// TestHookThatCannotGo: a chart gives a hook a finalizer that nobody removes. The next run waits for it
// to go, for ever: nothing has failed, and as hooks after the content are waited for, no later version is
// installed either.
func TestHookThatCannotGo(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hook-clings")
	clinging := configMap("notify", "1")
	clinging.SetFinalizers([]string{"edge.test/never"})
	hooks := []hook.Hook{hookAt(t, clinging, "post-install,post-upgrade,pre-delete")}
	t.Cleanup(func() {
		patch := client.RawPatch(types.MergePatchType, []byte(`{"metadata":{"finalizers":null}}`))
		_ = admin.Patch(context.Background(), &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: "notify"}}, patch)
	})
	f.applyDesired(t, f.wantingHooks("1.0.0", hooks, configMap("a", "1")))
	if err := f.applier.FinishHooks(t.Context(), f.owner, time.Minute); err != nil {
		t.Fatal(err)
	}
	f.applyDesired(t, f.wantingHooks("1.1.0", hooks, configMap("a", "2")))
	if err := f.applier.FinishHooks(t.Context(), f.owner, time.Minute); !isUnderway(err) {
		t.Fatal(err)
	}
	f.later.Store(int64(24 * time.Hour))
	if err := f.applier.FinishHooks(t.Context(), f.owner, time.Minute); isUnderway(err) {
		t.Errorf("after a day, with a deadline of a minute: %v", err)
	}
}

// TestHooksOfAnInstallationWaitForNoApproval: a first installation waits for no approval of rights. With
// rights in hooks it does, as soon as the first hook has run: what was begun counts as a version before.
func TestHooksOfAnInstallationWaitForNoApproval(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hook-growth")
	desired := f.wantingHooks("1.0.0", []hook.Hook{
		hookAt(t, secretReader("migrate"), "pre-install", "hook-weight", "-2"), hookAt(t, bindingTo("migrate", f.owner.Namespace), "pre-install", "hook-weight", "-1"),
		hookAt(t, idlePod("migrate"), "pre-install"),
	}, configMap("a", "1"))
	desired.Preflight.Growth = preflight.Growth{Approve: true}
	if _, err := f.applier.Apply(t.Context(), f.owner, desired); !isUnderway(err) {
		t.Fatal(err)
	}
	f.endPod(t, "migrate", corev1.PodSucceeded)
	if _, err := f.applier.Apply(t.Context(), f.owner, desired); err != nil {
		t.Errorf("the first installation ends half-way: %v", err)
	}
}

// TestApprovalTakenBackWhileAHookRuns: rights that grow were agreed to, and are not any more when the
// content is due that gives them. Nothing of it was written: a hook ran meanwhile.
func TestApprovalTakenBackWhileAHookRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hook-approval")
	f.apply(t, "1.0.0", configMap("a", "1"))
	desired := f.wantingHooks("1.1.0", []hook.Hook{hookAt(t, idlePod("migrate"), "pre-upgrade")},
		configMap("a", "2"), secretReader("operator"), bindingTo("operator", f.owner.Namespace))
	desired.Preflight.Growth = preflight.Growth{Approve: true, Approved: "1.1.0"}
	if _, err := f.applier.Apply(t.Context(), f.owner, desired); !isUnderway(err) {
		t.Fatal(err)
	}
	f.endPod(t, "migrate", corev1.PodSucceeded)
	desired.Preflight.Growth.Approved = ""
	_, err := f.applier.Apply(t.Context(), f.owner, desired)
	if _, waits := errors.AsType[*preflight.ApprovalError](err); !waits {
		t.Errorf("err = %v, and rights were given that nobody agrees to", err)
	}
}

// TestRightsOfWhatWasNeverInstalled: version 1.1 was agreed to, and its hook fails. Nobody has agreed to
// 1.2, which gives the same rights, and they were never given.
func TestRightsOfWhatWasNeverInstalled(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hook-approved")
	f.apply(t, "1.0.0", configMap("a", "1"))
	rights := []*unstructured.Unstructured{secretReader("operator"), bindingTo("operator", f.owner.Namespace)}
	desired := f.wantingHooks("1.1.0", []hook.Hook{hookAt(t, idlePod("migrate"), "pre-upgrade")}, append(rights, configMap("a", "2"))...)
	desired.Preflight.Growth = preflight.Growth{Approve: true, Approved: "1.1.0"}
	if _, err := f.applier.Apply(t.Context(), f.owner, desired); !isUnderway(err) {
		t.Fatal(err)
	}
	f.endPod(t, "migrate", corev1.PodFailed)
	if _, err := f.applier.Apply(t.Context(), f.owner, desired); err == nil {
		t.Fatal("the hook has not failed")
	}
	next := f.desired("1.2.0", append(rights, configMap("a", "3"))...)
	next.Preflight.Growth = desired.Preflight.Growth
	var err error
	for range 50 {
		if _, err = f.applier.Apply(t.Context(), f.owner, next); !isUnderway(err) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if _, waits := errors.AsType[*preflight.ApprovalError](err); !waits {
		t.Errorf("err = %v, and rights were given that nobody agreed to", err)
	}
}

func secretReader(name string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "Role", "metadata": map[string]any{"name": name},
		"rules": []any{map[string]any{"apiGroups": []any{""}, "resources": []any{"secrets"}, "verbs": []any{"get"}}},
	}}
}

func bindingTo(name, namespace string) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "rbac.authorization.k8s.io/v1", "kind": "RoleBinding", "metadata": map[string]any{"name": name},
		"roleRef":  map[string]any{"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": name},
		"subjects": []any{map[string]any{"kind": "ServiceAccount", "name": name, "namespace": namespace}},
	}}
}

// TestDeletionWhileAHookRuns: a migration to another version is at work while the extension is deleted. It is
// given up before hooks of the deletion run, as it is for another version.
func TestDeletionWhileAHookRuns(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hook-leaving")
	hooks := []hook.Hook{hookAt(t, configMap("backup", "of all"), "pre-delete")}
	f.applyDesired(t, f.wantingHooks("1.0.0", hooks, configMap("a", "1")))
	desired := f.wantingHooks("1.1.0", append(hooks, hookAt(t, idlePod("migrate"), "pre-upgrade")), configMap("a", "2"))
	if _, err := f.applier.Apply(t.Context(), f.owner, desired); !isUnderway(err) {
		t.Fatal(err)
	}
	err := f.applier.RunDeletionHooks(t.Context(), f.owner, hook.PreDelete, time.Minute)
	if pod := f.pod(t, "migrate"); pod != nil && f.live(t, "backup") != nil {
		t.Errorf("err = %v: the hook before the deletion has run while the one of an upgrade still does", err)
	}
}

// TestHookThatIsToStay: a hook has no before-hook-creation: it keeps something, and whoever wants it to run again
// has to delete it. Helm never does, and the controller says so. It does not do it by itself ten minutes later.
func TestHookThatIsToStay(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hook-data")
	hooks := func() []hook.Hook {
		return []hook.Hook{hookAt(t, configMap("data", "precious"), "pre-install,pre-upgrade", "hook-delete-policy", "hook-failed")}
	}
	f.applyDesired(t, f.wantingHooks("1.0.0", hooks(), configMap("a", "1")))
	kept := f.live(t, "data")
	desired := f.wantingHooks("1.1.0", hooks(), configMap("a", "2"))
	_, err := f.applier.Apply(t.Context(), f.owner, desired)
	failed, hasFailed := errors.AsType[*installation.HookFailedError](err)
	if !hasFailed || !strings.Contains(failed.Why, "delete it") || strings.Contains(failed.Next, "log") {
		t.Fatal(err)
	}
	f.later.Store(int64(11 * time.Minute))
	for range 20 {
		if _, err = f.applier.Apply(t.Context(), f.owner, desired); !isUnderway(err) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if now := f.live(t, "data"); now == nil || now.UID != kept.UID || now.DeletionTimestamp != nil {
		t.Errorf("what a person was asked to delete is deleted: err = %v", err)
	}
}

// TestForgedRun: labels and annotations anybody can write, who may create objects in the namespace. They do
// not say that a hook has run.
func TestForgedRun(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hook-forged")
	create(t, &corev1.ConfigMap{
		ObjectMeta: metav1.ObjectMeta{
			Namespace: f.owner.Namespace, Name: "seed", Labels: map[string]string{"olm.operatorframework.io/owner-name": f.owner.Name},
			Annotations: map[string]string{
				"meta.helm.sh/release-name": f.owner.Name, "meta.helm.sh/release-namespace": f.owner.Namespace,
				"olm.operatorframework.io/hook-run": string(f.owner.UID) + "/1/pre-install",
			},
		},
		Data: map[string]string{"key": "of a stranger"},
	})
	desired := f.wantingHooks("1.0.0", []hook.Hook{hookAt(t, configMap("seed", "of the chart"), "pre-install")}, configMap("a", "1"))
	var err error
	for range 20 {
		if _, err = f.applier.Apply(t.Context(), f.owner, desired); !isUnderway(err) {
			break
		}
		time.Sleep(100 * time.Millisecond)
	}
	if seed := f.live(t, "seed"); err == nil && seed.Data["key"] != "of the chart" {
		t.Errorf("installed, and the hook was never run: %v, controlled by %q", seed.Data, controllers(seed))
	}
}

// TestHooksWithoutADigest: hooks are found again by a revision that has a digest. Without one they are not skipped.
func TestHooksWithoutADigest(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hook-digest")
	desired := f.wantingHooks("1.0.0", []hook.Hook{hookAt(t, configMap("seed", "1"), "pre-install")}, configMap("a", "1"))
	desired.Digest = ""
	if _, err := f.applier.Apply(t.Context(), f.owner, desired); err == nil && f.live(t, "seed") == nil {
		t.Error("installed without its hook, and without a word")
	}
}

// TestRightsToGiveUpAHook: the ServiceAccount has what version 1.2 takes. It has to delete the hook of 1.1 that still
// runs, and is told of that right with all others that are missing.
func TestRightsToGiveUpAHook(t *testing.T) {
	t.Parallel()
	f := newPowerlessFixture(t, "hook-rights")
	rule := func(resource string) rbacv1.PolicyRule {
		return rbacv1.PolicyRule{APIGroups: []string{""}, Resources: []string{resource}, Verbs: []string{"*"}}
	}
	role := &rbacv1.Role{ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: "installer"}, Rules: []rbacv1.PolicyRule{rule("configmaps"), rule("pods")}}
	create(t, role)
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: "installer"},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.owner.Namespace, Name: account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: "installer"},
	})
	f.waitAllowed(t)
	f.apply(t, "1.0.0", configMap("a", "1"))
	if _, err := f.applier.Apply(t.Context(), f.owner, f.wantingHooks("1.1.0", []hook.Hook{hookAt(t, idlePod("migrate"), "pre-upgrade")}, configMap("a", "2"))); !isUnderway(err) {
		t.Fatal(err)
	}
	role.Rules = role.Rules[:1]
	if err := admin.Update(t.Context(), role); err != nil {
		t.Fatal(err)
	}
	f.waitMay(t, false, authorizationv1.ResourceAttributes{Verb: "delete", Resource: "pods"})
	_, err := f.applier.Apply(t.Context(), f.owner, f.wantingHooks("1.2.0", nil, configMap("a", "3")))
	if _, isMissing := errors.AsType[*permission.MissingError](err); err != nil && !isMissing {
		t.Errorf("the upgrade is stuck, and no check has asked for the right: %v", err)
	}
}
