package applier_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	authorizationv1 "k8s.io/api/authorization/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"k8s.io/client-go/util/retry"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
	"github.com/clusterextensions/operator-controller/internal/preflight/permission"
)

// afterRest is when a hook that has failed is run again.
const afterRest = 10*time.Minute + time.Second

// hookConfigMap is a hook that has ended when it is there.
func (f *fixture) hookConfigMap(name, events, more string) *unstructured.Unstructured {
	made := configMap(name, "v")
	made.SetNamespace(f.owner.Namespace)
	made.SetAnnotations(hookAnnotations(events, more))
	return made
}

// hookPod is a hook that is waited for. No node takes it: a test says what becomes of it.
func (f *fixture) hookPod(name, events, more string) *unstructured.Unstructured {
	made := &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": "v1", "kind": "Pod", "metadata": map[string]any{"name": name, "namespace": f.owner.Namespace},
		"spec": map[string]any{
			"restartPolicy": "Never", "serviceAccountName": account,
			"containers": []any{map[string]any{"name": "c", "image": "registry.test/none"}},
		},
	}}
	made.SetAnnotations(hookAnnotations(events, more))
	return made
}

// hookAnnotations have more as in "hook-weight=1 hook-delete-policy=hook-failed".
func hookAnnotations(events, more string) map[string]string {
	annotations := map[string]string{"helm.sh/hook": events}
	for one := range strings.FieldsSeq(more) {
		key, value, _ := strings.Cut(one, "=")
		annotations["helm.sh/"+key] = value
	}
	return annotations
}

// withHooks is a revision of a chart: its content is a ConfigMap with the version.
func (f *fixture) withHooks(t *testing.T, version string, hooks ...*unstructured.Unstructured) installation.Desired {
	t.Helper()
	desired := f.desired(version, configMap("content", version))
	desired.Digest, desired.HookDeadline = "sha256:"+version, 10*time.Minute
	var err error
	if desired.Hooks, err = hook.All(hooks); err != nil {
		t.Fatal(err)
	}
	return desired
}

// waits fails unless an operation waits for a hook.
func waits(t *testing.T, err error, event hook.Event, name string, going bool) {
	t.Helper()
	underway, ok := errors.AsType[*installation.HookUnderwayError](err)
	if !ok || underway.Event != event || underway.Object.Name != name || underway.Going != going || underway.RecheckAfter <= 0 {
		t.Fatalf("err = %#v (%v), want to wait for %s at %s, that it is gone: %t", err, err, name, event, going)
	}
}

// hasFailed fails unless an operation has ended for a hook, and gives why.
func hasFailed(t *testing.T, err error, event hook.Event, name string) *installation.HookFailedError {
	t.Helper()
	failed, ok := errors.AsType[*installation.HookFailedError](err)
	if !ok || failed.Event != event || failed.Object.Name != name {
		t.Fatalf("err = %v, want %s to have failed at %s", err, name, event)
	}
	return failed
}

// tries applies a revision if there is no hook to wait for, and gives what came of it.
func (f *fixture) tries(t *testing.T, desired installation.Desired) error {
	t.Helper()
	if err := f.applier.AwaitHook(t.Context(), f.owner, desired.Revision, desired.HookDeadline); err != nil {
		return err
	}
	_, err := f.applier.Apply(t.Context(), f.owner, desired)
	return err
}

// untilGone applies a revision until it does not wait any more for an object of an earlier run to be gone.
func (f *fixture) untilGone(t *testing.T, desired installation.Desired) error {
	t.Helper()
	var err error
	eventually(t, "the object of the earlier run to be gone", func() bool {
		err = f.tries(t, desired)
		underway, isUnderway := errors.AsType[*installation.HookUnderwayError](err)
		return !isUnderway || !underway.Going
	})
	return err
}

func (f *fixture) pod(t *testing.T, name string) *corev1.Pod {
	t.Helper()
	found := &corev1.Pod{}
	if err := client.IgnoreNotFound(admin.Get(t.Context(), client.ObjectKey{Namespace: f.owner.Namespace, Name: name}, found)); err != nil {
		t.Fatal(err)
	}
	if found.UID == "" {
		return nil
	}
	return found
}

// ends has a pod come to its end.
func (f *fixture) ends(t *testing.T, name string, exitCode int32) {
	t.Helper()
	err := retry.RetryOnConflict(retry.DefaultBackoff, func() error {
		pod := f.pod(t, name)
		if pod == nil {
			t.Fatalf("there is no pod %s", name)
		}
		pod.Status.Phase = corev1.PodSucceeded
		if exitCode != 0 {
			pod.Status.Phase = corev1.PodFailed
		}
		pod.Status.ContainerStatuses = []corev1.ContainerStatus{{Name: "c", State: corev1.ContainerState{Terminated: &corev1.ContainerStateTerminated{ExitCode: exitCode}}}}
		return admin.Status().Update(t.Context(), pod)
	})
	if err != nil {
		t.Fatal(err)
	}
}

func (f *fixture) podGoes(t *testing.T, name string) {
	t.Helper()
	eventually(t, "the pod "+name+" to be gone", func() bool { return f.pod(t, name) == nil })
}

func (f *fixture) configMapGoes(t *testing.T, name string) {
	t.Helper()
	eventually(t, "the ConfigMap "+name+" to be gone", func() bool { return f.live(t, name) == nil })
}

// posts are the kinds that were created since the last call, in their order.
func (f *fixture) posts() []string {
	var kinds []string
	for _, line := range f.requests.take() {
		if _, path, isPost := strings.Cut(line, " POST /api/v1/namespaces/"+f.owner.Namespace+"/"); isPost {
			kinds = append(kinds, path)
		}
	}
	return kinds
}

// TestHooksRunInTheirOrder installs a chart with hooks before and after its content.
func TestHooksRunInTheirOrder(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-in-order")
	desired := f.withHooks(
		t, "1.0.0",
		f.hookPod("second", "pre-install", "hook-weight=2 hook-delete-policy=hook-succeeded"), f.hookPod("late", "post-install", ""),
		f.hookConfigMap("settings", "pre-install", "hook-weight=-5 hook-delete-policy=before-hook-creation,hook-succeeded"),
		f.hookPod("first", "pre-install", "hook-weight=1"), f.hookPod("probe", "test", ""), f.hookPod("other", "pre-upgrade", ""),
	)
	result, err := f.applier.Apply(t.Context(), f.owner, desired)
	if waits(t, err, hook.PreInstall, "first", false); result.Began {
		t.Error("something of the content was written")
	}
	if deadline := f.pod(t, "first").Spec.ActiveDeadlineSeconds; deadline == nil || *deadline != 600 {
		t.Errorf("the pod has a deadline of %v, want ten minutes", deadline)
	}
	if settings := f.live(t, "settings"); settings == nil || len(settings.OwnerReferences) != 1 || settings.OwnerReferences[0].UID != f.owner.UID {
		t.Errorf("the hook is %+v, want one of the extension", settings)
	}
	f.requests.take()
	waits(t, f.tries(t, desired), hook.PreInstall, "first", false)
	if requests := f.requests.take(); len(requests) != 1 || !strings.HasSuffix(requests[0], " GET /api/v1/namespaces/"+f.owner.Namespace+"/pods/first") {
		t.Errorf("%q are made to look at a hook that runs, want one", requests)
	}
	if f.pod(t, "second") != nil || f.live(t, "content") != nil {
		t.Error("what comes after a hook does not wait for it")
	}
	f.ends(t, "first", 0)
	waits(t, f.tries(t, desired), hook.PreInstall, "second", false)
	f.ends(t, "second", 0)
	f.applyDesired(t, desired)
	if kinds := f.posts(); !slices.Equal(kinds, []string{"pods", "configmaps"}) {
		t.Errorf("%q were created, want a hook and the content", kinds)
	}
	f.podGoes(t, "second")
	f.configMapGoes(t, "settings")
	if f.pod(t, "first") == nil {
		t.Error("a hook was deleted that is to stay until the next one")
	}
	if state := f.observe(t); !state.HooksDue || state.DeletionHooks || state.Unfinished {
		t.Errorf("the state is %+v", state)
	}
	finish := func() error { return f.applier.FinishHooks(t.Context(), f.owner, desired.HookDeadline) }
	waits(t, finish(), hook.PostInstall, "late", false)
	f.restart(t)
	waits(t, finish(), hook.PostInstall, "late", false)
	f.ends(t, "late", 0)
	if err := finish(); err != nil {
		t.Fatal(err)
	}
	if state := f.observe(t); state.HooksDue {
		t.Errorf("the state is %+v", state)
	}
	f.requests.take()
	if err := finish(); err != nil {
		t.Fatal(err)
	}
	if requests := f.requests.take(); len(requests) > 0 {
		t.Errorf("%q are made although nothing is due", requests)
	}
	if f.pod(t, "probe") != nil || f.pod(t, "other") != nil {
		t.Error("a hook of another event was run")
	}
}

// TestHooksAfterTheNextRevision: a hook after the content has failed, and the next revision mends it. What
// comes after that one runs, and not once more what came after the one before.
func TestHooksAfterTheNextRevision(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-of-the-next")
	first := f.withHooks(t, "1.0.0", f.hookPod("late", "post-install", ""))
	f.applyDesired(t, first)
	finish := func() error { return f.applier.FinishHooks(t.Context(), f.owner, first.HookDeadline) }
	waits(t, finish(), hook.PostInstall, "late", false)
	f.ends(t, "late", 1)
	hasFailed(t, finish(), hook.PostInstall, "late")
	f.applyDesired(t, f.withHooks(t, "1.1.0", f.hookConfigMap("mended", "post-install,post-upgrade", "")))
	if err := finish(); err != nil {
		t.Fatalf("the hook of the next revision has come to: %v", err)
	}
	if f.live(t, "mended") == nil {
		t.Error("the hook of the next revision was not run")
	}
}

// TestHookThatIsOfOthers has somebody else's object in the place of a hook.
func TestHookThatIsOfOthers(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-of-others")
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: "notes"}}
	create(t, theirs)
	desired := f.withHooks(t, "1.0.0", f.hookConfigMap("notes", "pre-install", ""))
	for range 2 {
		conflict, ok := errors.AsType[*object.ConflictError](f.tries(t, desired))
		if !ok || len(conflict.Conflicts) != 1 || conflict.Conflicts[0].Object.Name != "notes" {
			t.Fatalf("got %v", conflict)
		}
	}
	if found := f.live(t, "notes"); found == nil || found.UID != theirs.UID || len(found.OwnerReferences) > 0 {
		t.Errorf("it is %+v now", found)
	}
	if f.live(t, "content") != nil {
		t.Error("content was written")
	}
	if err := admin.Delete(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	f.applyDesired(t, desired)
}

// TestHookOfAnEarlierRun has the object of an installation in the way of an upgrade.
func TestHookOfAnEarlierRun(t *testing.T) {
	t.Parallel()
	const events = "pre-install,pre-upgrade"
	t.Run("before-hook-creation", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, "hooks-before-creation")
		first := f.withHooks(t, "1.0.0", f.hookPod("migrate", events, ""))
		waits(t, f.tries(t, first), hook.PreInstall, "migrate", false)
		earlier := f.pod(t, "migrate")
		f.ends(t, "migrate", 0)
		f.applyDesired(t, first)
		second := f.withHooks(t, "1.1.0", f.hookPod("migrate", events, ""))
		waits(t, f.untilGone(t, second), hook.PreUpgrade, "migrate", false)
		if now := f.pod(t, "migrate"); now.UID == earlier.UID {
			t.Fatal("the object of the earlier run tells of this one")
		}
		if content := f.live(t, "content"); content.Data["key"] != "1.0.0" {
			t.Errorf("the content is %v before the hook has ended", content.Data)
		}
		f.ends(t, "migrate", 0)
		f.applyDesired(t, second)
	})
	t.Run("another policy", func(t *testing.T) {
		t.Parallel()
		f := newFixture(t, "hooks-that-stay")
		secret := func() *unstructured.Unstructured {
			return f.hookConfigMap("password", events, "hook-delete-policy=hook-failed")
		}
		f.applyDesired(t, f.withHooks(t, "1.0.0", secret()))
		earlier := f.live(t, "password")
		second := f.withHooks(t, "1.1.0", secret())
		for range 3 { // it is tried again, and never deleted: nobody has asked for that
			failed := hasFailed(t, f.tries(t, second), hook.PreUpgrade, "password")
			if !strings.Contains(failed.Why, "an object of an earlier run exists") || failed.RetryIn <= 0 {
				t.Errorf("got %+v", failed)
			}
			f.later.Add(int64(afterRest))
		}
		if now := f.live(t, "password"); now == nil || now.UID != earlier.UID {
			t.Fatalf("the object of the earlier run is %+v", now)
		}
		if err := admin.Delete(t.Context(), earlier); err != nil {
			t.Fatal(err)
		}
		f.applyDesired(t, second)
	})
}

// TestHooksWithData is F24 and F26: the PersistentVolumeClaim of a hook is created once and outlives the extension, although
// the default delete policy deletes the objects of earlier runs.
func TestHooksWithData(t *testing.T) {
	t.Parallel()
	const events = "pre-install,pre-upgrade"
	f := newFixture(t, "hooks-with-data")
	claim := func() *unstructured.Unstructured {
		made := manifests(t, "apiVersion: v1\nkind: PersistentVolumeClaim\nmetadata: {name: data, namespace: "+f.owner.Namespace+"}\n"+
			"spec: {accessModes: [ReadWriteOnce], resources: {requests: {storage: 1Gi}}}\n")[0]
		made.SetAnnotations(hookAnnotations(events, ""))
		return made
	}
	kept := f.hookConfigMap("kept", events, "resource-policy=keep")
	f.applyDesired(t, f.withHooks(t, "1.0.0", claim(), kept))
	read := func() *corev1.PersistentVolumeClaim {
		found := &corev1.PersistentVolumeClaim{}
		if err := admin.Get(t.Context(), client.ObjectKey{Namespace: f.owner.Namespace, Name: "data"}, found); err != nil {
			t.Fatal(err)
		}
		return found
	}
	first := read()
	if err := f.untilGone(t, f.withHooks(t, "1.1.0", claim(), kept)); err != nil {
		t.Fatal(err)
	}
	if now := read(); now.UID != first.UID || now.DeletionTimestamp != nil || len(now.OwnerReferences) > 0 {
		t.Errorf("the claim is %+v, and was %s", now.ObjectMeta, first.UID)
	}
	if owners := f.live(t, "kept").OwnerReferences; len(owners) > 0 {
		t.Errorf("the garbage collector deletes the object that is kept: %v", owners)
	}
}

// TestHookThatFails rests, and is run again, with all that went when it failed.
func TestHookThatFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-that-fail")
	desired := f.withHooks(
		t, "1.0.0",
		f.hookConfigMap("settings", "pre-install", "hook-weight=-2 hook-delete-policy=before-hook-creation,hook-succeeded"),
		f.hookPod("once", "pre-install", "hook-weight=-1 hook-delete-policy=hook-succeeded"),
		f.hookPod("migrate", "pre-install", ""),
	)
	f.requests.answer = func(req *http.Request) string {
		if strings.HasSuffix(req.URL.Path, "/pods/migrate/log") {
			return "a beginning\n  the \x1b[31mlast words \n\n"
		}
		return ""
	}
	waits(t, f.tries(t, desired), hook.PreInstall, "once", false)
	f.ends(t, "once", 0)
	waits(t, f.tries(t, desired), hook.PreInstall, "migrate", false)
	first := f.pod(t, "migrate")
	f.ends(t, "migrate", 3)
	failed := hasFailed(t, f.tries(t, desired), hook.PreInstall, "migrate")
	if !strings.HasPrefix(failed.Why, `container "c" has ended with 3; its log ends with: `) || !strings.HasSuffix(failed.Why, "last words") || strings.Contains(failed.Why, "\x1b") {
		t.Errorf("it says %q", failed.Why)
	}
	if failed.RetryIn > 10*time.Minute || failed.RetryIn < 9*time.Minute || failed.IsAfter() {
		t.Errorf("got %+v, want to try again in ten minutes", failed)
	}
	f.podGoes(t, "once")
	f.configMapGoes(t, "settings")
	f.requests.take()
	if again := hasFailed(t, f.tries(t, desired), hook.PreInstall, "migrate"); again.Why != failed.Why {
		t.Errorf("it says %q, and then %q", failed.Why, again.Why)
	}
	if requests := f.requests.take(); len(requests) != 1 {
		t.Errorf("%q are made while it rests, want one", requests)
	}
	if state := f.observe(t); state.Installed != nil || !state.Unfinished {
		t.Errorf("the state is %+v", state)
	}
	f.restart(t)
	if again := hasFailed(t, f.tries(t, desired), hook.PreInstall, "migrate"); again.Why != failed.Why {
		t.Errorf("another process says %q instead of %q", again.Why, failed.Why)
	}

	f.later.Add(int64(afterRest))
	waits(t, f.untilGone(t, desired), hook.PreInstall, "migrate", false)
	if f.pod(t, "migrate").UID == first.UID {
		t.Fatal("it is not run again")
	}
	if f.live(t, "settings") == nil {
		t.Error("it is run again without what comes before it")
	}
	if f.pod(t, "once") != nil {
		t.Error("a hook that has succeeded is run again")
	}
	f.ends(t, "migrate", 0)
	f.applyDesired(t, desired)
	f.configMapGoes(t, "settings")
}

// TestHookThatSomebodyDeletes is run again at once.
func TestHookThatSomebodyDeletes(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-deleted")
	desired := f.withHooks(t, "1.0.0", f.hookPod("migrate", "pre-install", ""))
	waits(t, f.tries(t, desired), hook.PreInstall, "migrate", false)
	f.ends(t, "migrate", 1)
	hasFailed(t, f.tries(t, desired), hook.PreInstall, "migrate")
	if err := admin.Delete(t.Context(), f.pod(t, "migrate")); err != nil {
		t.Fatal(err)
	}
	f.podGoes(t, "migrate")
	waits(t, f.tries(t, desired), hook.PreInstall, "migrate", false)
	f.ends(t, "migrate", 0)
	f.applyDesired(t, desired)
}

// TestHookThatGoesWhenItFails rests although its object is gone.
func TestHookThatGoesWhenItFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-gone-on-failure")
	desired := f.withHooks(t, "1.0.0", f.hookPod("migrate", "pre-install", "hook-delete-policy=hook-failed"))
	waits(t, f.tries(t, desired), hook.PreInstall, "migrate", false)
	f.ends(t, "migrate", 1)
	hasFailed(t, f.tries(t, desired), hook.PreInstall, "migrate")
	f.podGoes(t, "migrate")
	if failed := hasFailed(t, f.tries(t, desired), hook.PreInstall, "migrate"); strings.Contains(failed.Next, "see the log") || strings.Contains(failed.Next, "within one") {
		t.Errorf("it says %q of what is gone with its log", failed.Next)
	}
	f.later.Add(int64(afterRest))
	waits(t, f.tries(t, desired), hook.PreInstall, "migrate", false)
}

// TestHookThatRunsOn has failed when its time is over, whatever its object says.
func TestHookThatRunsOn(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-for-ever")
	desired := f.withHooks(t, "1.0.0", f.hookPod("migrate", "pre-install", ""))
	waits(t, f.tries(t, desired), hook.PreInstall, "migrate", false)
	f.later.Add(int64(12 * time.Minute))
	if failed := hasFailed(t, f.tries(t, desired), hook.PreInstall, "migrate"); !strings.HasPrefix(failed.Why, "it has not ended within 10m0s") {
		t.Errorf("it says %q", failed.Why)
	}
}

// TestAbandonedHook is deleted when another revision is wanted, whose hooks run then.
func TestAbandonedHook(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-abandoned")
	waits(t, f.tries(t, f.withHooks(t, "1.0.0", f.hookPod("old", "pre-install", ""))), hook.PreInstall, "old", false)
	wanted := f.withHooks(t, "1.1.0", f.hookPod("new", "pre-install", ""))
	waits(t, f.tries(t, wanted), hook.PreInstall, "old", true)
	waits(t, f.untilGone(t, wanted), hook.PreInstall, "new", false)
	if f.pod(t, "old") != nil {
		t.Error("the hook of the other revision still runs")
	}
	f.ends(t, "new", 0)
	f.applyDesired(t, wanted)
	if content := f.live(t, "content"); content == nil || content.Data["key"] != "1.1.0" {
		t.Errorf("the content is %+v", content)
	}
}

// TestHookAfterTheContentFails leaves the revision installed; another one can follow.
func TestHookAfterTheContentFails(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-after")
	first := f.withHooks(t, "1.0.0", f.hookPod("notify", "post-install", ""))
	f.applyDesired(t, first)
	finish := func() error { return f.applier.FinishHooks(t.Context(), f.owner, first.HookDeadline) }
	waits(t, finish(), hook.PostInstall, "notify", false)
	f.ends(t, "notify", 1)
	for range 2 {
		if failed := hasFailed(t, finish(), hook.PostInstall, "notify"); !failed.IsAfter() {
			t.Errorf("got %+v", failed)
		}
	}
	if state := f.observe(t); installed(state) != "1.0.0" || state.Unfinished || !state.HooksDue {
		t.Errorf("the state is %+v", state)
	}
	f.applyDesired(t, f.withHooks(t, "1.1.0"))
	if err := finish(); err != nil {
		t.Errorf("hooks of the revision before are still due: %v", err)
	}
}

// TestHooksOfADeletion run before the content goes, and when all of it is gone; each once, whichever
// process sees to it.
func TestHooksOfADeletion(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-of-deletion")
	desired := f.withHooks(t, "1.0.0", f.hookPod("leave", "pre-delete", ""), f.hookPod("left", "post-delete", "hook-delete-policy=hook-succeeded"))
	f.applyDesired(t, desired)
	f.beginRemoval(t)
	f.owner.Held = true
	has := func(event hook.Event) bool {
		t.Helper()
		has, err := f.applier.DeletionHooks(t.Context(), f.owner)
		if err != nil {
			t.Fatal(err)
		}
		if event == hook.PostDelete {
			return has.After
		}
		return has.Before
	}
	run := func(event hook.Event) error {
		f.restart(t)
		return f.applier.RunDeletionHooks(t.Context(), f.owner, event, desired.HookDeadline)
	}
	if !has(hook.PreDelete) || !has(hook.PostDelete) {
		t.Fatal("there are no hooks for the deletion")
	}
	waits(t, run(hook.PreDelete), hook.PreDelete, "leave", false)
	waits(t, run(hook.PreDelete), hook.PreDelete, "leave", false)
	f.ends(t, "leave", 0)
	for range 2 {
		if err := run(hook.PreDelete); err != nil {
			t.Fatal(err)
		}
	}
	if f.live(t, "content") == nil || f.pod(t, "left") != nil {
		t.Error("the content goes before the hooks before that have run, or those after it run too early")
	}
	eventually(t, "the content to be gone", func() bool {
		left, err := f.applier.DeleteContent(t.Context(), f.owner)
		if err != nil {
			t.Fatal(err)
		}
		return len(left) == 0
	})
	if f.live(t, "content") != nil {
		t.Error("the content is still there")
	}
	waits(t, run(hook.PostDelete), hook.PostDelete, "left", false)
	f.ends(t, "left", 0)
	for range 2 {
		if err := run(hook.PostDelete); err != nil {
			t.Fatal(err)
		}
	}
	if has(hook.PreDelete) {
		t.Error("hooks before the deletion are to run again")
	}
	f.podGoes(t, "left")
}

// TestNoHooksOfADeletion is known without a request.
func TestNoHooksOfADeletion(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "no-hooks-of-deletion")
	f.applyDesired(t, f.withHooks(t, "1.0.0", f.hookConfigMap("settings", "pre-install", "")))
	f.requests.take()
	if has, err := f.applier.DeletionHooks(t.Context(), f.owner); has != (installation.DeletionHooks{}) || err != nil {
		t.Errorf("there are some: %+v, %v", has, err)
	}
	if requests := f.requests.take(); len(requests) > 0 {
		t.Errorf("%q are made", requests)
	}
}

// TestHooksAndOwners: no hook is begun for an extension that is gone by now.
func TestHooksAndOwners(t *testing.T) {
	t.Parallel()
	f := newFixture(t, "hooks-and-owners")
	desired := f.withHooks(t, "1.0.0", f.hookPod("notify", "post-install", ""), f.hookPod("leave", "pre-delete", ""))
	f.applyDesired(t, desired)
	f.beginRemoval(t)
	if err := f.applier.FinishHooks(t.Context(), f.owner, desired.HookDeadline); !errors.Is(err, object.ErrOwnerGone) {
		t.Errorf("err = %v, want that it is being deleted", err)
	}
	f.endRemoval(t)
	f.owner.Held = true
	eventually(t, "the end of the extension", func() bool {
		err := f.applier.RunDeletionHooks(t.Context(), f.owner, hook.PreDelete, desired.HookDeadline)
		// The garbage collector may have been here, and has left no record of any hook.
		return errors.Is(err, object.ErrOwnerGone) || err == nil && len(f.allRecords(t)) == 0
	})
	if f.pod(t, "notify") != nil || f.pod(t, "leave") != nil {
		t.Error("a hook was run")
	}
}

// TestDeathLeavesNoHookTwice ends the process after each of the writes of an installation with hooks,
// and has another one finish it.
func TestDeathLeavesNoHookTwice(t *testing.T) {
	t.Parallel()
	for writes := 0; ; writes++ {
		if finished := diesAmongHooks(t, writes); finished {
			if writes < 10 {
				t.Errorf("the installation has %d writes only: the test did not see them all", writes)
			}
			return
		}
	}
}

// diesAmongHooks reports whether the installation came to its end within that many writes.
func diesAmongHooks(t *testing.T, writes int) (finished bool) {
	t.Helper()
	f := newFixture(t, fmt.Sprintf("hooks-die-%d", writes))
	desired := f.withHooks(
		t, "1.0.0",
		f.hookConfigMap("settings", "pre-install", "hook-weight=-1 hook-delete-policy=hook-succeeded"),
		f.hookPod("before", "pre-install", "hook-delete-policy=hook-succeeded"), f.hookPod("after", "post-install", ""),
	)
	var sent atomic.Int64
	created := map[string]int{} // by one process after the other
	count := func(req *http.Request) {
		if req.Method == http.MethodPost && strings.Contains(req.URL.Path, "/namespaces/"+f.owner.Namespace+"/") {
			if body, err := req.GetBody(); err == nil {
				made := metav1.PartialObjectMetadata{}
				if json.NewDecoder(body).Decode(&made) == nil {
					created[made.Name]++
				}
				_ = body.Close()
			}
		}
	}
	f.requests.setStop(func(req *http.Request) error {
		if !isWrite(req) {
			return nil
		}
		if sent.Add(1) > int64(writes) {
			return errDied
		}
		count(req)
		return nil
	})
	err := f.toTheEnd(t, desired)
	finished = err == nil
	if !finished && !errors.Is(err, errDied) {
		t.Fatalf("after %d writes: %v", writes, err)
	}
	f.restart(t)
	f.requests.setStop(func(req *http.Request) error {
		if isWrite(req) {
			count(req)
		}
		return nil
	})
	if err := f.toTheEnd(t, desired); err != nil {
		t.Fatalf("after %d writes and a restart: %v", writes, err)
	}
	for _, name := range []string{"settings", "before", "content", "after"} {
		if created[name] != 1 {
			t.Errorf("after %d writes and a restart %s was created %d times", writes, name, created[name])
		}
	}
	return finished
}

// toTheEnd installs a revision whose pods succeed.
func (f *fixture) toTheEnd(t *testing.T, desired installation.Desired) error {
	t.Helper()
	for {
		state, err := f.applier.Observe(t.Context(), f.owner)
		if err == nil && (state.Unfinished || state.Installed == nil) {
			err = f.tries(t, desired)
		}
		if err == nil {
			err = f.applier.FinishHooks(t.Context(), f.owner, desired.HookDeadline)
		}
		underway, isUnderway := errors.AsType[*installation.HookUnderwayError](err)
		if !isUnderway {
			return err
		}
		if !underway.Going {
			f.ends(t, underway.Object.Name, 0)
		}
	}
}

// TestHooksWithoutRights: whose hook may not be run is told so, before anything is written, and when the
// extension goes.
func TestHooksWithoutRights(t *testing.T) {
	t.Parallel()
	f := newPowerlessFixture(t, "hooks-without-rights")
	binding := &rbacv1.ClusterRoleBinding{
		ObjectMeta: metav1.ObjectMeta{Name: f.owner.Namespace},
		Subjects:   []rbacv1.Subject{{Kind: rbacv1.ServiceAccountKind, Namespace: f.owner.Namespace, Name: account}},
		RoleRef:    rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "ClusterRole", Name: "cluster-admin"},
	}
	create(t, binding)
	f.waitAllowed(t)
	f.applyDesired(t, f.withHooks(t, "1.0.0", f.hookPod("leave", "pre-delete", "")))
	role := &rbacv1.Role{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: "content-only"},
		Rules:      []rbacv1.PolicyRule{{APIGroups: []string{""}, Resources: []string{"configmaps"}, Verbs: []string{"*"}}},
	}
	create(t, role)
	create(t, &rbacv1.RoleBinding{
		ObjectMeta: metav1.ObjectMeta{Namespace: f.owner.Namespace, Name: role.Name}, Subjects: binding.Subjects,
		RoleRef: rbacv1.RoleRef{APIGroup: rbacv1.GroupName, Kind: "Role", Name: role.Name},
	})
	if err := admin.Delete(t.Context(), binding); err != nil {
		t.Fatal(err)
	}
	f.waitMay(t, false, authorizationv1.ResourceAttributes{Verb: "create", Resource: "pods"})
	f.waitAllowed(t)
	err := f.tries(t, f.withHooks(t, "1.1.0", f.hookPod("migrate", "pre-upgrade", ""), f.hookPod("probe", "test", "")))
	missing, ok := errors.AsType[*permission.MissingError](err)
	if !ok {
		t.Fatalf("err = %v, want the rights that are missing", err)
	}
	text := missing.Error()
	if !strings.Contains(text, "migrate") || !strings.Contains(text, "create") || strings.Contains(text, "probe") || strings.Contains(text, "pods/log") {
		t.Errorf("it says: %s", text)
	}
	if content := f.live(t, "content"); content.Data["key"] != "1.0.0" {
		t.Errorf("the content is %v", content.Data)
	}
	f.beginRemoval(t)
	f.owner.Held = true
	if err := f.applier.RunDeletionHooks(t.Context(), f.owner, hook.PreDelete, time.Minute); !apierrors.IsForbidden(err) {
		t.Errorf("err = %v, want it to be forbidden", err)
	}
}
