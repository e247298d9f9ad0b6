package e2e_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// hangingJob is a Job that does not end: no node takes its pod.
func hangingJob(name, events string) string {
	return strings.Replace(failingJob(name, events), "activeDeadlineSeconds: 1", "backoffLimit: 0", 1)
}

// TestQuotaHoldsAHookOfADeletion: a namespace has no room for one more Job at the moment. The backup before a deletion
// waits, and nothing is deleted that it was to save, until somebody lets it go.
func TestQuotaHoldsAHookOfADeletion(t *testing.T) {
	t.Parallel()
	const name = "chart-no-room"
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", map[string]string{"templates/backup.yaml": hookJob("backup", "pre-delete", "")})))
	installed(t, name, "1.0.0")
	quota := &corev1.ResourceQuota{
		ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "jobs"},
		Spec:       corev1.ResourceQuotaSpec{Hard: corev1.ResourceList{"count/jobs.batch": resource.MustParse("0")}},
	}
	if err := theSuite.Admin.Create(t.Context(), quota); err != nil {
		t.Fatal(err)
	}
	eventually(t, "the quota", func(ctx context.Context) error {
		if err := theSuite.Admin.Get(ctx, client.ObjectKeyFromObject(quota), quota); err != nil {
			return err
		}
		if len(quota.Status.Hard) == 0 {
			return errors.New("it has no status")
		}
		return nil
	})
	deleteExtension(t, name)
	conditionContains(t, name, ocv1.TypeReady, "False DeletionBlocked: being deleted, which waits until hooks are run: ")
	conditionContains(t, name, ocv1.TypeReady, "exceeded quota")
	conditionContains(t, name, ocv1.TypeReady, "to go on without, set spec.uninstall.hooks to Skip")
	chartSettings(t, name, map[string]string{"version": "1.0.0"})
	update(t, name, func(extension *ocv1.ClusterExtension) {
		extension.Spec.Uninstall = &ocv1.ClusterExtensionUninstallConfig{Hooks: ocv1.HooksUninstallPolicySkip}
	})
	gone(t, &ocv1.ClusterExtension{}, "", name)
}

// TestBackWhileAHookRuns: nobody wants the upgrade any more.
func TestBackWhileAHookRuns(t *testing.T) {
	t.Parallel()
	const name = "chart-back"
	first := pushedChart(t, name, "1.0.0", nil)
	extend(t, name, fromImage(first))
	installed(t, name, "1.0.0")
	update(t, name, fromImage(pushedChart(t, name, "1.1.0", map[string]string{"templates/migrate.yaml": hangingJob("migrate", "pre-upgrade")})))
	job(t, name, "migrate")
	update(t, name, fromImage(first))
	gone(t, &batchv1.Job{}, name, "migrate")
	conditionContains(t, name, ocv1.TypeReady, `True Succeeded: "chart-back.v1.0.0"`)
	chartSettings(t, name, map[string]string{"version": "1.0.0"})
}

// TestRecreatedWhileAHookRuns: the second extension of the name runs its own hooks.
func TestRecreatedWhileAHookRuns(t *testing.T) {
	t.Parallel()
	const name = "chart-anew"
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", map[string]string{"templates/migrate.yaml": hangingJob("migrate", "pre-install")})))
	before := job(t, name, "migrate")
	deleteExtension(t, name)
	gone(t, &ocv1.ClusterExtension{}, "", name)
	extendOnly(t, name, fromImage(pushedChart(t, name, "1.0.1", map[string]string{"templates/migrate.yaml": hookJob("migrate", "pre-install", "")})))
	installed(t, name, "1.0.1")
	conditionContains(t, name, ocv1.TypeReady, "True Succeeded: ")
	if after := job(t, name, "migrate"); after.UID == before.UID || after.Status.Succeeded != 1 {
		t.Errorf("the hook of the second has not run: %+v", after.Status)
	}
}

// TestSuspendedWhileAHookRuns: nothing is written while the extension is suspended.
func TestSuspendedWhileAHookRuns(t *testing.T) {
	t.Parallel()
	const name = "chart-pause"
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", nil)))
	installed(t, name, "1.0.0")
	update(t, name, fromImage(pushedChart(t, name, "1.1.0", map[string]string{
		"templates/a.yaml": `apiVersion: v1
kind: Pod
metadata: {name: a, annotations: {helm.sh/hook: pre-upgrade}}
spec: {restartPolicy: Never, nodeSelector: {no: node}, containers: [{name: c, image: registry.test/none}]}
`,
		"templates/b.yaml": hookJob("b", "pre-upgrade", ""),
	})))
	running := &corev1.Pod{}
	exists(t, running, name, "a")
	update(t, name, func(extension *ocv1.ClusterExtension) { extension.Spec.Suspend = true })
	conditionContains(t, name, ocv1.TypeSuspended, "True")
	patch := client.RawPatch(types.MergePatchType, []byte(`{"status": {"phase": "Succeeded"}}`))
	if err := theSuite.Admin.Status().Patch(t.Context(), running, patch); err != nil {
		t.Fatal(err)
	}
	time.Sleep(5 * time.Second)
	if err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Namespace: name, Name: "b"}, &batchv1.Job{}); err == nil {
		t.Error("a hook was begun while the extension is suspended")
	}
	chartSettings(t, name, map[string]string{"version": "1.0.0"})
	update(t, name, func(extension *ocv1.ClusterExtension) { extension.Spec.Suspend = false })
	installed(t, name, "1.1.0")
	job(t, name, "b")
}

// TestVanishingHook counts what a Job that deletes itself costs in half a minute.
func TestVanishingHook(t *testing.T) {
	t.Parallel()
	const name = "chart-vanish"
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", map[string]string{"templates/migrate.yaml": hangingJob("migrate", "pre-install")})))
	job(t, name, "migrate")
	for end := time.Now().Add(30 * time.Second); time.Now().Before(end); time.Sleep(100 * time.Millisecond) {
		gone := &batchv1.Job{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "migrate"}}
		_ = client.IgnoreNotFound(theSuite.Admin.Delete(t.Context(), gone, client.PropagationPolicy(metav1.DeletePropagationBackground)))
	}
	created := 0
	for _, write := range writesAs(t, name) {
		if write == "create jobs" {
			created++
		}
	}
	if created > 5 {
		t.Errorf("%d Jobs were created in 30 s for one hook", created)
	}
}

// TestBackToWhatIsInstalledRunsNoHook: the first hook of an upgrade hangs, and nothing of the content is written. Back to what is
// installed is no upgrade: its own hooks, which were for the way to it, do not run, and do not fail.
func TestBackToWhatIsInstalledRunsNoHook(t *testing.T) {
	t.Parallel()
	const name = "chart-stay"
	first := pushedChart(t, name, "1.0.0", map[string]string{"templates/old.yaml": failingJob("old", "pre-upgrade")})
	extend(t, name, fromImage(first))
	installed(t, name, "1.0.0")
	conditionContains(t, name, ocv1.TypeReady, "True Succeeded: ")
	update(t, name, fromImage(pushedChart(t, name, "1.1.0", map[string]string{"templates/migrate.yaml": hangingJob("migrate", "pre-upgrade")})))
	job(t, name, "migrate")
	update(t, name, fromImage(first))
	gone(t, &batchv1.Job{}, name, "migrate")
	for minutes := int32(11); minutes < 14; minutes++ { // each has another pass
		time.Sleep(2 * time.Second)
		update(t, name, func(extension *ocv1.ClusterExtension) { extension.Spec.ProgressDeadlineMinutes = minutes })
	}
	time.Sleep(2 * time.Second)
	extension := &ocv1.ClusterExtension{}
	if err := theSuite.Admin.Get(t.Context(), client.ObjectKey{Name: name}, extension); err != nil {
		t.Fatal(err)
	}
	for _, condition := range extension.Status.Conditions {
		if condition.Type == ocv1.TypeReady && condition.Status != metav1.ConditionTrue {
			t.Errorf("Ready is %s: %s", condition.Reason, condition.Message)
		}
	}
	created := slices.DeleteFunc(writesAs(t, name), func(write string) bool { return write != "create jobs" })
	if len(created) != 1 {
		t.Errorf("%d Jobs were created: a hook of what is installed was run", len(created))
	}
}
