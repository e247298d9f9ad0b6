package controller

import (
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"
	corev1 "k8s.io/api/core/v1"
	apierrors "k8s.io/apimachinery/pkg/api/errors"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/runtime/schema"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/applier/installation"
	"github.com/clusterextensions/operator-controller/internal/applier/object"
	"github.com/clusterextensions/operator-controller/internal/hook"
)

func hookRuns(event hook.Event) *installation.HookUnderwayError {
	return &installation.HookUnderwayError{Event: event, Object: keyOf("Job", "ns", "migrate"), RecheckAfter: 3 * time.Second}
}

// nextHook is what to do about one whose object is there.
const nextHook = "see the log of its pods, and mend what it needs; it is run again every ten minutes, or within one if it is deleted"

func hookFailed(event hook.Event, why string) *installation.HookFailedError {
	return &installation.HookFailedError{Event: event, Object: keyOf("Job", "ns", "migrate"), Why: why, Next: nextHook, RetryIn: 10 * time.Minute}
}

// TestHooksOfADeletion makes one pass over an extension that is being deleted, and whose chart has
// hooks for that.
func TestHooksOfADeletion(t *testing.T) {
	t.Parallel()
	const (
		leave, left  = "hooks before deletion", "hooks after deletion"
		notRun       = "Warning HooksSkipped: the hooks of the chart for its deletion are not run: "
		waitsContent = "being deleted, which waits until its content is gone, for the hooks after that"
	)
	var (
		forbidden = &object.RightsError{Err: apierrors.NewForbidden(schema.GroupResource{Group: "batch", Resource: "jobs"}, "migrate", errors.New("no"))}
		skipping  = "; to go on without, set spec.uninstall.hooks to Skip"
		before    = func(err error) map[hook.Event][]error { return map[hook.Event][]error{hook.PreDelete: {err}} }
		after     = func(err error) map[hook.Event][]error { return map[hook.Event][]error{hook.PostDelete: {err}} }
		gone      = []string{"begin deletion", "forget x"}
	)
	tests := map[string]struct {
		reason     string
		hooks      map[hook.Event][]error
		hooksErr   error
		content    [][]string
		contentErr error
		policy     UninstallPolicy
		uses       [][]installation.Use
		skip       bool
		noAccount  bool
		foreground bool

		did   []string
		goes  bool
		ready string
		told  string
		wait  time.Duration
	}{
		"none":   {did: gone, goes: true},
		"before": {hooks: before(nil), did: append([]string{leave}, gone...), goes: true},
		"before, which runs": {
			hooks: before(hookRuns(hook.PreDelete)), did: []string{leave},
			ready: `False Terminating: being deleted, which waits for the pre-delete hook Job "migrate" in namespace "ns"`, wait: 3 * time.Second,
		},
		"before, which has failed": {
			hooks: before(hookFailed(hook.PreDelete, "boom")), did: []string{leave},
			ready: `False DeletionBlocked: the pre-delete hook Job "migrate" in namespace "ns" has failed: boom; ` + nextHook + "; to go on without, set spec.uninstall.hooks to Skip",
			wait:  hookInterval,
		},
		"before, which is not allowed any more": {
			hooks: before(forbidden), did: append([]string{leave}, gone...), goes: true, told: notRun + `jobs.batch "migrate" is forbidden: no`,
		},
		"before, which nobody wants any more": {
			hooks: before(object.ErrOwnerGone), did: []string{leave},
			ready: "False Terminating: being deleted, which waits for its hooks", wait: removalRecheck,
		},
		"before, which cannot be run": {
			hooks: before(errors.New("boom")), did: []string{leave},
			ready: "False DeletionBlocked: " + failedUninstallText("hooks are run", errors.New("boom")) + skipping, wait: uninstallRetry,
		},
		"before, which is to be skipped": {hooks: map[hook.Event][]error{hook.PreDelete: {nil}, hook.PostDelete: {nil}}, skip: true, did: gone, goes: true},
		"not known": {
			hooksErr: errors.New("boom"), did: nil,
			ready: "False DeletionBlocked: " + failedUninstallText("hooks are looked for", errors.New("boom")) + skipping, wait: uninstallRetry,
		},
		"not known, and to be skipped": {hooksErr: errors.New("boom"), skip: true, did: gone, goes: true},
		"in the foreground": {
			reason: "everything is going already", hooks: map[hook.Event][]error{hook.PreDelete: {nil}, hook.PostDelete: {nil}}, foreground: true, did: gone, goes: true, wait: remainingDelay,
			told: notRun + "the cluster deletes everything at once, as the extension was deleted in the foreground",
		},
		"without a ServiceAccount": {
			hooks: map[hook.Event][]error{hook.PreDelete: {nil}, hook.PostDelete: {nil}}, noAccount: true, did: gone, goes: true,
			told: notRun + `ServiceAccount "sa" does not exist in namespace "ns"`,
		},
		"after": {hooks: after(nil), did: append([]string{"delete content", left}, gone...), goes: true},
		"after content that goes": {
			hooks: after(nil), content: [][]string{{`ConfigMap "a"`}}, did: []string{"delete content"},
			ready: "False Terminating: " + waitsContent + `: ConfigMap "a"`, wait: uninstallInterval,
		},
		"after content that may not be deleted": {
			hooks: after(nil), contentErr: forbidden, did: append([]string{"delete content"}, gone...), goes: true,
			told: notRun + `jobs.batch "migrate" is forbidden: no`,
		},
		"after content that cannot be deleted": {
			hooks: after(nil), contentErr: errors.New("boom"), did: []string{"delete content"},
			ready: "False DeletionBlocked: " + failedUninstallText("the content is deleted", errors.New("boom")) + skipping, wait: uninstallRetry,
		},
		"after content that is to stay by now": {
			hooks: after(nil), contentErr: object.ErrOwnerGone, did: []string{"delete content"},
			ready: "False Terminating: " + waitsContent, wait: removalRecheck,
		},
		"after, which has failed": {
			hooks: after(hookFailed(hook.PostDelete, "boom")), did: []string{"delete content", left},
			ready: `False DeletionBlocked: the post-delete hook Job "migrate" in namespace "ns" has failed: boom; ` + nextHook + "; to go on without, set spec.uninstall.hooks to Skip",
			wait:  hookInterval,
		},
		"both": {hooks: map[hook.Event][]error{hook.PreDelete: {nil}, hook.PostDelete: {nil}}, did: append([]string{leave, "delete content", left}, gone...), goes: true},
		"not while it is refused": {
			hooks: before(nil), policy: UninstallRefuseWhileInUse,
			uses: [][]installation.Use{{{Definition: "widgets.p", Count: 1, First: []installation.StoredObject{storedWidget("a")}}}},
			did:  []string{"uses, held: true", "repair"},
			ready: "False DeletionBlocked: deletion is refused while there are custom resources: 1 of widgets.p: " +
				`Widget "a" in namespace "n"; delete them, or set another spec.uninstall`,
			wait: uninstallRetry,
		},
		"before definitions are kept": {
			hooks: before(hookRuns(hook.PreDelete)), policy: UninstallKeep, did: []string{leave},
			ready: `False Terminating: being deleted, which waits for the pre-delete hook Job "migrate" in namespace "ns"`, wait: 3 * time.Second,
		},
		"what a hook says is long": {
			hooks: before(hookFailed(hook.PreDelete, strings.Repeat("long ", 1000))), did: []string{leave}, wait: hookInterval,
		},
	}
	for name, tc := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			ext := sampleExtension()
			ext.Finalizers = append(slices.Clone(finalizers), ocv1.UninstallPolicyFinalizer)
			if tc.foreground {
				ext.Finalizers = append(ext.Finalizers, metav1.FinalizerDeleteDependents)
			}
			if tc.skip {
				ext.Spec.Uninstall = &ocv1.ClusterExtensionUninstallConfig{Hooks: ocv1.HooksUninstallPolicySkip}
			}
			ext.DeletionTimestamp = &metav1.Time{Time: time.Unix(1000, 0)}
			objects := []client.Object{ext}
			if !tc.noAccount {
				objects = append(objects, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: ext.Spec.Namespace, Name: ext.Spec.ServiceAccount.Name}})
			}
			w := newWorld(t, objects...)
			w.reconciler.UninstallPolicy = tc.policy
			w.installation.Installed = &installation.Revision{}
			w.deletionHooks, w.deletionHooksErr, w.contentLeft, w.contentErr, w.uses = tc.hooks, tc.hooksErr, tc.content, tc.contentErr, tc.uses
			result, err := w.reconcile(t)
			if err != nil || result.RequeueAfter != tc.wait {
				t.Errorf("looked at again after %s (%v), want %s", result.RequeueAfter, err, tc.wait)
			}
			if diff := cmp.Diff(tc.did, w.did); diff != "" {
				t.Errorf("done (-want +got): %s\n%s", tc.reason, diff)
			}
			told := slices.DeleteFunc(slices.Clone(w.events), func(event string) bool { return !strings.Contains(event, eventHooksSkipped) })
			if tc.told == "" && len(told) > 0 || tc.told != "" && (len(told) != 1 || !strings.HasPrefix(told[0], tc.told)) {
				t.Errorf("told is %q, want %q once", told, tc.told)
			}
			got := &ocv1.ClusterExtension{}
			err = w.client.Get(t.Context(), client.ObjectKeyFromObject(ext), got)
			isReleased := apierrors.IsNotFound(err) || slices.Equal(got.Finalizers, []string{metav1.FinalizerDeleteDependents})
			if isReleased != tc.goes {
				t.Fatalf("it is there: %v, want it to go: %t", err, tc.goes)
			}
			if tc.goes {
				return
			}
			if tc.ready == "" {
				message := meta.FindStatusCondition(got.Status.Conditions, ocv1.TypeReady).Message
				if len(message) > maxText || !strings.HasSuffix(message, "set spec.uninstall.hooks to Skip") {
					t.Errorf("%d bytes are told: %s", len(message), message)
				}
				return
			}
			if diff := cmp.Diff(tc.ready, brief(&got.Status, ocv1.TypeReady)); diff != "" {
				t.Errorf("Ready (-want +got):\n%s", diff)
			}
			isBlocked := strings.Contains(tc.ready, ocv1.ReasonDeletionBlocked)
			if is := meta.IsStatusConditionTrue(got.Status.Conditions, ocv1.TypeStalled); is != isBlocked {
				t.Errorf("Stalled is %t", is)
			}
		})
	}
}

// TestHooksBeforeTheContent has an upgrade wait for a hook, which fails, and then succeed. What is
// installed is repaired meanwhile.
func TestHooksBeforeTheContent(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.catalog["p"] = offering("1.0.0").Package
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	w.catalog["p"] = offering("1.0.0", "1.1.0").Package
	pass := func(why string, err error, wait time.Duration, did string, want map[string]string) {
		t.Helper()
		w.did, w.applyErr = nil, err
		w.reconciler.holds.ask("x")
		w.passed += time.Minute
		result, _ := w.reconcile(t)
		if result.RequeueAfter != wait {
			t.Errorf("%s: looked at again after %s, want %s", why, result.RequeueAfter, wait)
		}
		if !strings.HasSuffix(strings.Join(w.did, ", "), did) {
			t.Errorf("%s: done is %q, want it to end with %s", why, w.did, did)
		}
		for kind, text := range want {
			if got := brief(&w.extension(t).Status, kind); !strings.HasPrefix(got, text) {
				t.Errorf("%s: %s is %s, want %s", why, kind, got, text)
			}
		}
	}
	const waiting = `"p.v1.1.0" waits for the pre-upgrade hook Job "migrate" in namespace "ns"`
	pass("it runs", hookRuns(hook.PreUpgrade), 3*time.Second, "apply 1.1.0, repair, close", map[string]string{
		ocv1.TypeReady:       `Unknown RollingOut: "p.v1.0.0" version "1.0.0" is installed, from catalog "c"; ` + waiting + "; `kubectl -n ns get pods,events` says more",
		ocv1.TypeProgressing: "True RollingOut: " + waiting, ocv1.TypeInstalled: "True Succeeded: ",
	})
	const failure = `the upgrade to "p.v1.1.0" cannot go on: the pre-upgrade hook Job "migrate" in namespace "ns" has failed: boom`
	pass("it has failed", hookFailed(hook.PreUpgrade, "boom"), 0, "apply 1.1.0, repair, close", map[string]string{
		ocv1.TypeReady: "False Blocked: " + failure + "; " + nextHook, ocv1.TypeStalled: "True Blocked: ", ocv1.TypeInstalled: "True Succeeded: ",
	})
	pass("it has succeeded", nil, 0, "apply 1.1.0, write, close", map[string]string{ocv1.TypeReady: "True Succeeded: ", ocv1.TypeProgressing: "True Succeeded: "})
}

// TestHooksAfterTheContent: the next revision waits for hooks that run, and not for one that has failed.
func TestHooksAfterTheContent(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.catalog["p"] = offering("1.0.0").Package
	pass := func(why string, hooks []error, isApplied bool, ready string) {
		t.Helper()
		w.did, w.hooks = nil, hooks
		w.passed += time.Minute
		w.reconciler.holds.ask("x")
		_, _ = w.reconcile(t)
		if got := slices.ContainsFunc(w.did, func(one string) bool { return strings.HasPrefix(one, "apply") }); got != isApplied {
			t.Errorf("%s: done is %q", why, w.did)
		}
		if got := brief(&w.extension(t).Status, ocv1.TypeReady); !strings.HasPrefix(got, ready) {
			t.Errorf("%s: Ready is %s, want %s", why, got, ready)
		}
	}
	pass("installed, and it runs", []error{hookRuns(hook.PostInstall)}, true, "Unknown RollingOut: ")
	if !slices.Contains(w.did, "hooks after within 10m0s") {
		t.Errorf("done is %q", w.did)
	}
	pass("it has failed", []error{hookFailed(hook.PostInstall, "boom")}, false, `False Blocked: "p.v1.0.0" is installed, but the post-install hook Job "migrate" in namespace "ns" has failed: boom; `)
	w.catalog["p"] = offering("1.0.0", "1.1.0").Package
	pass("it runs again", []error{hookRuns(hook.PostInstall), nil}, false, "")
	pass("it has failed again", []error{hookFailed(hook.PostInstall, "boom"), nil}, true, "True Succeeded: ")
}

// TestHooksOfWhatIsHalfReplaced: hooks before the content of 1.1 run, or it is written in part. Hooks of 1.0 are not for that, and what was
// written does not go back to 1.0 for them.
func TestHooksOfWhatIsHalfReplaced(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.catalog["p"] = offering("1.0.0").Package
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	w.catalog["p"] = offering("1.0.0", "1.1.0").Package
	installed := w.installation.Installed
	for _, begun := range []installation.State{{Unfinished: true}, {HooksWait: true}} {
		begun.Installed = installed
		w.did, w.installation, w.hooks = nil, begun, []error{hookRuns(hook.PostInstall)}
		_, _ = w.reconcile(t)
		if !strings.HasPrefix(strings.Join(w.did, ", "), "fetch registry.test/p:v1.1.0, apply 1.1.0, ") {
			t.Errorf("%+v: done is %q, want the upgrade to go on", begun, w.did)
		}
	}
}

// TestHooksAreNotRunWhereContentIsAmiss: what they are for is not there.
func TestHooksAreNotRunWhereContentIsAmiss(t *testing.T) {
	t.Parallel()
	w := sampleWorld(t)
	w.catalog["p"] = offering("1.0.0").Package
	if _, err := w.reconcile(t); err != nil {
		t.Fatal(err)
	}
	w.did, w.repairErr, w.hooks = nil, errors.New("boom"), []error{nil}
	_, _ = w.reconcile(t)
	if len(w.hooks) != 1 || !slices.Contains(w.did, "repair") {
		t.Errorf("done is %q", w.did)
	}
}

// TestHookThatHasFailedIsLookedAt: somebody may have deleted it, which nobody tells.
func TestHookThatHasFailedIsLookedAt(t *testing.T) {
	t.Parallel()
	for in, want := range map[time.Duration]time.Duration{10 * time.Minute: hookInterval, 20 * time.Second: 20 * time.Second} {
		failed := hookFailed(hook.PreUpgrade, "boom")
		failed.RetryIn = in
		v := classify(upgrading(StageApply, failed))
		if v.disposition != Blocked || v.again != want || !v.isRetried() {
			t.Errorf("with another run in %s: %+v, want another look in %s", in, v, want)
		}
	}
}

// TestHookThatRunsIsAllThatIsLookedAt: nothing is fetched, rendered or applied meanwhile, and what is
// installed is repaired.
func TestHookThatRunsIsAllThatIsLookedAt(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		err   error
		ready string
	}{
		"it runs":       {hookRuns(hook.PreUpgrade), "Unknown RollingOut: "},
		"it has failed": {hookFailed(hook.PreUpgrade, "boom"), `False Blocked: the upgrade to "p.v1.1.0" cannot go on: the pre-upgrade hook Job "migrate" in namespace "ns" has failed: boom; `},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := sampleWorld(t)
			if _, err := w.reconcile(t); err != nil {
				t.Fatal(err)
			}
			w.catalog["p"] = offering("1.0.0", "1.1.0").Package
			w.did, w.begunHooks = nil, []error{tc.err}
			_, _ = w.reconcile(t)
			if diff := cmp.Diff([]string{"hook before", "repair"}, w.did); diff != "" {
				t.Errorf("done (-want +got):\n%s", diff)
			}
			if got := brief(&w.extension(t).Status, ocv1.TypeReady); !strings.HasPrefix(got, tc.ready) {
				t.Errorf("Ready is %s, want %s", got, tc.ready)
			}
		})
	}
}
