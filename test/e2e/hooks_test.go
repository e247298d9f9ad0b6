package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	batchv1 "k8s.io/api/batch/v1"
	corev1 "k8s.io/api/core/v1"
	rbacv1 "k8s.io/api/rbac/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// hookJob is a template of a Job that runs at events.
func hookJob(name, events, more string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s, annotations: {helm.sh/hook: %q%s}}
spec: {template: {spec: {restartPolicy: Never, containers: [{name: c, image: registry.test/none}]}}}
`, name, events, more)
}

// failingJob is a Job that fails within a second or two: no node takes its pod.
func failingJob(name, events string) string {
	return fmt.Sprintf(`apiVersion: batch/v1
kind: Job
metadata: {name: %s, annotations: {helm.sh/hook: %q}}
spec:
  activeDeadlineSeconds: 1
  template: {spec: {restartPolicy: Never, nodeSelector: {no: node}, containers: [{name: c, image: registry.test/none}]}}
`, name, events)
}

// writesAs are the creations and deletions by the ServiceAccount of an extension, in their order, as in
// "create jobs/migrate".
func writesAs(t *testing.T, name string) []string {
	t.Helper()
	requests, err := theSuite.audit.ControllerRequests()
	if err != nil {
		t.Fatal(err)
	}
	var writes []string
	for _, request := range requests {
		isAccount := request.ImpersonatedUser != nil && strings.HasPrefix(request.ImpersonatedUser.Username, "system:serviceaccount:"+name+":")
		if !isAccount || request.ObjectRef == nil || request.ResponseStatus.Code > 299 || strings.Contains(request.RequestURI, "dryRun=") {
			continue
		}
		switch request.Verb {
		case "create":
			writes = append(writes, "create "+request.ObjectRef.Resource)
		case "delete":
			writes = append(writes, "delete "+request.ObjectRef.Resource+"/"+request.ObjectRef.Name)
		}
	}
	return writes
}

// inOrder fails unless the wanted writes are among the others in this order.
func inOrder(t *testing.T, writes []string, wanted ...string) {
	t.Helper()
	left := wanted
	for _, write := range writes {
		if len(left) > 0 && write == left[0] {
			left = left[1:]
		}
	}
	if len(left) > 0 {
		t.Errorf("%q is not where it is to be in the order %q; writes:\n%s", left[0], wanted, strings.Join(writes, "\n"))
	}
}

func job(t *testing.T, namespace, name string) *batchv1.Job {
	t.Helper()
	found := &batchv1.Job{}
	exists(t, found, namespace, name)
	return found
}

// TestHooksOfAChart takes a chart with hooks of each kind through its life, with the rights that
// are printed for it and no more.
func TestHooksOfAChart(t *testing.T) {
	t.Parallel()
	const name = "chart-hooks"
	files := map[string]string{
		"templates/account.yaml": `apiVersion: v1
kind: ServiceAccount
metadata: {name: migrate, annotations: {helm.sh/hook: "pre-install,pre-upgrade", helm.sh/hook-weight: "-5", helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"}}
`,
		"templates/migrate.yaml": hookJob("migrate", "pre-install,pre-upgrade", ""),
		"templates/first.yaml":   hookJob("first", "post-install", `, helm.sh/hook-weight: "1"`),
		"templates/second.yaml":  hookJob("second", "post-install", `, helm.sh/hook-weight: "2", helm.sh/hook-delete-policy: hook-succeeded`),
		"templates/after.yaml":   hookJob("after", "post-upgrade", ""),
		"templates/leave.yaml":   hookJob("leave", "pre-delete", ""),
		"templates/left.yaml":    hookJob("left", "post-delete", ""),
	}
	makeNamespace(t, name)
	t.Cleanup(func() {
		remove(t, &rbacv1.ClusterRole{ObjectMeta: metav1.ObjectMeta{Name: name + ":" + installer}})
		remove(t, &rbacv1.ClusterRoleBinding{ObjectMeta: metav1.ObjectMeta{Name: name + ":" + installer}})
	})
	extendOnly(t, name, fromImage(pushedChart(t, name, "1.0.0", files)))
	conditionContains(t, name, ocv1.TypeReady, "ServiceAccount")
	apply(t, command(t, theSuite.Cluster.Kubeconfig(), "bundle", "rbac", "clusterextension/"+name))
	conditionContains(t, name, ocv1.TypeReady, `True Succeeded: "chart-hooks.v1.0.0" version "1.0.0" is installed`)
	migrated := job(t, name, "migrate")
	settings := &corev1.ConfigMap{}
	exists(t, settings, name, "settings")
	if done := migrated.Status.CompletionTime; done == nil || settings.CreationTimestamp.Before(done) {
		t.Errorf("the content is of %s, and the hook before it has ended at %s", settings.CreationTimestamp, done)
	}
	if got := migrated.Spec.ActiveDeadlineSeconds; got == nil || *got != 600 {
		t.Errorf("the hook has a deadline of %v, want ten minutes", got)
	}
	gone(t, &batchv1.Job{}, name, "second")
	gone(t, &corev1.ServiceAccount{}, name, "migrate")
	inOrder(t, writesAs(t, name), "create serviceaccounts", "create jobs", "delete serviceaccounts/migrate", "create configmaps", "create jobs", "create jobs", "delete jobs/second")
	random := password(t, name)
	if made := planned(t, name); len(made.Objects)+len(made.Hooks)+len(made.Obstacles) > 0 || made.Waits != "" || made.Counts.Unchanged == 0 {
		t.Errorf("nothing is to be done, and a plan has %+v", made)
	}

	// A second migration takes the place of the first, and what was random stays.
	update(t, name, fromImage(pushedChart(t, name, "1.1.0", files)))
	apply(t, command(t, theSuite.Cluster.Kubeconfig(), "bundle", "rbac", "clusterextension/"+name))
	conditionContains(t, name, ocv1.TypeReady, `True Succeeded: "chart-hooks.v1.1.0" version "1.1.0" is installed`)
	if again := job(t, name, "migrate"); again.UID == migrated.UID {
		t.Error("the hook of the upgrade was not run")
	}
	job(t, name, "after")
	if password(t, name) == random {
		t.Error("the upgrade has not rendered the chart")
	}

	contains(t, strings.Join(plannedDeletion(t, theSuite.Cluster.Kubeconfig(), name).Order, "\n"),
		`hooks run before all else that goes: Job "leave"`, `hooks run when that is gone: Job "left"`)
	before := len(writesAs(t, name))
	deleteExtension(t, name)
	gone(t, &ocv1.ClusterExtension{}, "", name)
	inOrder(t, writesAs(t, name)[before:], "create jobs", "delete configmaps/settings", "create jobs")
	gone(t, &batchv1.Job{}, name, "left")
	gone(t, &batchv1.Job{}, name, "migrate")
}

// TestC5HookFails has an upgrade whose first hook fails: nothing is written, the message names it, and
// it is run again when somebody deletes it.
func TestC5HookFails(t *testing.T) {
	t.Parallel()
	const name = "chart-failing"
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", nil)))
	installed(t, name, "1.0.0")
	update(t, name, fromImage(pushedChart(t, name, "1.1.0", map[string]string{"templates/migrate.yaml": failingJob("migrate", "pre-upgrade")})))
	const failed = `the pre-upgrade hook Job "migrate" in namespace "chart-failing" has failed: DeadlineExceeded: `
	conditionContains(t, name, ocv1.TypeReady, `False Blocked: the upgrade to "chart-failing.v1.1.0" cannot go on: `+failed)
	conditionContains(t, name, ocv1.TypeReady, "see the log of its pods")
	conditionContains(t, name, ocv1.TypeProgressing, "False Blocked: ")
	conditionContains(t, name, ocv1.TypeStalled, "True Blocked: ")
	conditionContains(t, name, ocv1.TypeInstalled, "True Succeeded: ")
	chartSettings(t, name, map[string]string{"version": "1.0.0"})
	output, blocked := plan(t, theSuite.Cluster.Kubeconfig(), name)
	contains(t, output, "in the way:", failed)
	if !blocked {
		t.Errorf("a plan finds nothing in the way:\n%s", output)
	}

	// What is installed is repaired meanwhile.
	settings := &corev1.ConfigMap{}
	exists(t, settings, name, "settings")
	remove(t, settings)
	chartSettings(t, name, map[string]string{"version": "1.0.0"})

	// Another version has a hook of that name that succeeds.
	update(t, name, fromImage(pushedChart(t, name, "1.2.0", map[string]string{"templates/migrate.yaml": hookJob("migrate", "pre-upgrade", "")})))
	installed(t, name, "1.2.0")
	conditionContains(t, name, ocv1.TypeReady, "True Succeeded: ")
	chartSettings(t, name, map[string]string{"version": "1.2.0"})
}

// TestHookAfterFails has a hook fail that comes after the content: that is installed, and not ready.
func TestHookAfterFails(t *testing.T) {
	t.Parallel()
	const name = "chart-late"
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", map[string]string{"templates/notify.yaml": failingJob("notify", "post-install")})))
	conditionContains(t, name, ocv1.TypeReady, `False Blocked: "chart-late.v1.0.0" is installed, but the post-install hook Job "notify" in namespace "chart-late" has failed: `)
	conditionContains(t, name, ocv1.TypeInstalled, "True Succeeded: ")
	chartSettings(t, name, map[string]string{"version": "1.0.0"})
	output, blocked := plan(t, theSuite.Cluster.Kubeconfig(), name)
	contains(t, output, "in the way:", `the post-install hook Job "notify" in namespace "chart-late" has failed: `, "unchanged")
	if !blocked {
		t.Errorf("a plan finds nothing in the way:\n%s", output)
	}
	deleteExtension(t, name)
	gone(t, &ocv1.ClusterExtension{}, "", name)
}

// TestC6DeleteHookWithoutAccount removes an extension with hooks whose ServiceAccount is gone.
func TestC6DeleteHookWithoutAccount(t *testing.T) {
	t.Parallel()
	const name = "chart-forsaken"
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", map[string]string{
		"templates/leave.yaml": hookJob("leave", "pre-delete", ""), "templates/left.yaml": hookJob("left", "post-delete", ""),
	})))
	installed(t, name, "1.0.0")
	remove(t, &corev1.ServiceAccount{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: installer}})
	conditionContains(t, name, ocv1.TypeReady, "does not exist") // that is known
	deleteExtension(t, name)
	gone(t, &ocv1.ClusterExtension{}, "", name)
	eventTells(t, name, "HooksSkipped", "the hooks of the chart for its deletion are not run: ")
	gone(t, &corev1.ConfigMap{}, name, "settings")
	for _, write := range writesAs(t, name) {
		if write == "create jobs" {
			t.Error("a hook was run")
		}
	}
}

// TestDeleteHookFails has a deletion wait for a person, who lets it go on.
func TestDeleteHookFails(t *testing.T) {
	t.Parallel()
	const name = "chart-clinging"
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", map[string]string{"templates/leave.yaml": failingJob("leave", "pre-delete")})))
	installed(t, name, "1.0.0")
	deleteExtension(t, name)
	conditionContains(t, name, ocv1.TypeReady, `False DeletionBlocked: the pre-delete hook Job "leave" in namespace "chart-clinging" has failed: `)
	conditionContains(t, name, ocv1.TypeReady, `to go on without, set spec.uninstall.hooks to Skip`)
	chartSettings(t, name, map[string]string{"version": "1.0.0"})
	update(t, name, func(extension *ocv1.ClusterExtension) {
		extension.Spec.Uninstall = &ocv1.ClusterExtensionUninstallConfig{Hooks: ocv1.HooksUninstallPolicySkip}
	})
	gone(t, &ocv1.ClusterExtension{}, "", name)
	gone(t, &corev1.ConfigMap{}, name, "settings")
}

// TestHookOfOthers has an object of somebody else where a hook is to be: it stays.
func TestHookOfOthers(t *testing.T) {
	t.Parallel()
	const name = "chart-taken"
	makeNamespace(t, name)
	makeAccount(t, name)
	grant(t, name, "cluster-admin")
	theirs := &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "notes"}, Data: map[string]string{"of": "others"}}
	if err := theSuite.Admin.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	extendOnly(t, name, fromImage(pushedChart(t, name, "1.0.0", map[string]string{
		"templates/notes.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: notes, annotations: {helm.sh/hook: pre-install}}\n",
	})))
	conditionContains(t, name, ocv1.TypeReady, `ConfigMap "notes" in namespace "chart-taken" exists already and belongs to `)
	found := &corev1.ConfigMap{}
	exists(t, found, name, "notes")
	if found.UID != theirs.UID || found.Data["of"] != "others" {
		t.Errorf("it is %v now", found.ObjectMeta)
	}
	remove(t, theirs)
	installed(t, name, "1.0.0")
}

// TestDeathAmongHooks kills the controller again and again while hooks run: each has run once.
//
//nolint:paralleltest // the controller is killed
func TestDeathAmongHooks(t *testing.T) {
	const name = "chart-dying"
	files := map[string]string{}
	var wanted []string
	for _, events := range []string{"pre-install", "post-install"} {
		for i := range 3 {
			hook := fmt.Sprintf("%s-%d", events, i)
			files["templates/"+hook+".yaml"] = hookJob(hook, events, "")
			wanted = append(wanted, hook)
		}
	}
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", files)))
	for i := range 6 {
		dieAfter(t, time.Duration(i)*300*time.Millisecond)
	}
	conditionContains(t, name, ocv1.TypeReady, `True Succeeded: "chart-dying.v1.0.0" version "1.0.0" is installed`)
	var jobs batchv1.JobList
	eventually(t, "the hooks", func(ctx context.Context) error { return theSuite.Admin.List(ctx, &jobs, client.InNamespace(name)) })
	slices.SortFunc(jobs.Items, func(a, b batchv1.Job) int { return a.CreationTimestamp.Compare(b.CreationTimestamp.Time) })
	var got []string
	for _, found := range jobs.Items {
		got = append(got, found.Name)
		if found.Status.Succeeded != 1 {
			t.Errorf("%s has succeeded %d times", found.Name, found.Status.Succeeded)
		}
	}
	slices.Sort(got)
	slices.Sort(wanted)
	if !slices.Equal(got, wanted) {
		t.Errorf("hooks %q have run, want %q", got, wanted)
	}
	created := 0
	for _, write := range writesAs(t, name) {
		if write == "create jobs" {
			created++
		}
	}
	if created != len(wanted) {
		t.Errorf("%d Jobs were created, want %d", created, len(wanted))
	}
}

// TestTestsOfAChart has somebody run the tests of a chart, which the controller never does.
func TestTestsOfAChart(t *testing.T) {
	t.Parallel()
	const name = "chart-tested"
	const goes = `, helm.sh/hook-delete-policy: "before-hook-creation,hook-succeeded"`
	passes := map[string]string{
		"templates/tests/data.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: data, annotations: {helm.sh/hook: test, helm.sh/hook-weight: \"-1\"" + goes + "}}\n",
		"templates/tests/test.yaml": hookJob("answers", "test", goes),
	}
	extend(t, name, fromImage(pushedChart(t, name, "1.0.0", passes)))
	installed(t, name, "1.0.0")
	admin := theSuite.Cluster.Kubeconfig()
	before := len(writesAs(t, name))
	got := command(t, admin, "bundle", "test", name, "--timeout", "2m")
	if lines := strings.Split(got, "\n"); len(lines) != 3 || lines[0] != "data: created" || !strings.HasPrefix(lines[1], "answers: passed in ") {
		t.Errorf("it prints\n%s", got)
	}
	gone(t, &batchv1.Job{}, name, "answers")
	gone(t, &corev1.ConfigMap{}, name, "data")

	// One that fails does not keep the other from being run, and stays to be looked at.
	passes["templates/tests/fails.yaml"] = failingJob("fails", "test")
	passes["templates/tests/test.yaml"] = hookJob("passes", "test", "")
	update(t, name, fromImage(pushedChart(t, name, "1.1.0", passes)))
	installed(t, name, "1.1.0")
	for range 2 { // an earlier run is in nobody's way
		got, err := theSuite.LocalOutput(t.Context(), "bundle", "test", "clusterextension/"+name, "--logs", "--kubeconfig", admin)
		if err == nil || !strings.Contains(err.Error(), "1 test of 3 has failed") {
			t.Errorf("it ends with %v", err)
		}
		if !strings.Contains(got, "\nfails: failed: DeadlineExceeded: ") || !strings.Contains(got, "\npasses: passed in ") {
			t.Errorf("it prints\n%s", got)
		}
	}
	failed := job(t, name, "fails")
	if owner := metav1.GetControllerOf(failed); owner == nil || owner.Name != name {
		t.Errorf("its owners are %v", failed.OwnerReferences)
	}
	job(t, name, "passes")
	for _, write := range writesAs(t, name)[before:] {
		if write == "create jobs" {
			t.Error("the controller has run a test")
		}
	}

	// What somebody else has made under its name stays, and what is left goes with the extension.
	remove(t, job(t, name, "passes"))
	gone(t, &batchv1.Job{}, name, "passes")
	theirs := failed.DeepCopy()
	theirs.ObjectMeta = metav1.ObjectMeta{Namespace: name, Name: "passes"}
	theirs.Spec.Selector, theirs.Spec.Template.Labels = nil, nil
	if err := theSuite.Admin.Create(t.Context(), theirs); err != nil {
		t.Fatal(err)
	}
	got, _ = theSuite.LocalOutput(t.Context(), "bundle", "test", name, "-o", "json", "--kubeconfig", admin)
	var results []struct {
		Name    string `json:"name"`
		Result  string `json:"result"`
		Message string `json:"message"`
	}
	if err := json.Unmarshal([]byte(got), &results); err != nil {
		t.Errorf("%v in\n%s", err, got)
	}
	var told []string
	for _, result := range results {
		told = append(told, result.Name+" "+result.Result)
	}
	if want := []string{"data Created", "fails Failed", "passes Failed"}; !slices.Equal(told, want) || !strings.HasPrefix(results[2].Message, "an object of its name exists already and belongs to nobody that it names") {
		t.Errorf("it prints\n%s", got)
	}
	if found := job(t, name, "passes"); found.UID != theirs.UID {
		t.Error("it was replaced")
	}
	deleteExtension(t, name)
	gone(t, &ocv1.ClusterExtension{}, "", name)
	gone(t, &batchv1.Job{}, name, "fails")
	job(t, name, "passes")
}
