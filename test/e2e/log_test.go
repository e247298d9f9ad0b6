package e2e_test

import (
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/meta"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
)

// TestLogOfALife has a controller of its own, and reads all that it has logged
// between its start and its stop.
//
//nolint:paralleltest // it replaces the controller of all tests
func TestLogOfALife(t *testing.T) {
	before, path := theSuite.controllerLog, filepath.Join(t.TempDir(), "controller.log")
	t.Cleanup(func() { theSuite.controllerLog = before })
	theSuite.controllerLog = path
	replaceController(t, raceEnabled, "--v=0")
	theSuite.controllerLog = before

	const name = "logged"
	publishEdited(t, name, map[string]string{"verbs: [get, list, watch]": "verbs: [get, list, watch, delete]"})
	brokenCatalog(t, "logged-broken")
	makeNamespace(t, name)
	extendOnly(t, name, version("1.0.0"), func(extension *ocv1.ClusterExtension) {
		extension.Spec.Install = &ocv1.ClusterExtensionInstallConfig{Preflight: &ocv1.PreflightConfig{
			Permissions: &ocv1.PermissionsPreflightConfig{Growth: ocv1.PermissionGrowthApprove},
		}}
	})
	conditionContains(t, name, ocv1.TypeProgressing, "service account")
	makeAccount(t, name)
	conditionContains(t, name, ocv1.TypeProgressing, "pre-authorization failed")
	grant(t, name, "cluster-admin")
	installed(t, name, "1.0.0")
	deploymentAvailable(t, name, name)

	update(t, name, version("1.x"))
	conditionContains(t, name, ocv1.TypeReady, "True ApprovalPending")
	remove(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings"}})
	exists(t, &corev1.ConfigMap{}, name, "settings")
	eventTells(t, name, "Repaired", `ConfigMap "settings" in namespace "logged"`)
	update(t, name, func(extension *ocv1.ClusterExtension) {
		extension.Spec.Install.Preflight.Permissions.ApprovedVersion = "1.1.0"
	})
	installed(t, name, "1.1.0")
	remove(t, &ocv1.ClusterExtension{ObjectMeta: metav1.ObjectMeta{Name: name}})
	if err := theSuite.controller.Stop(); err != nil {
		t.Fatal(err)
	}
	// What is left has finalizers that only a controller takes off.
	if err := theSuite.startController(t.Context()); err != nil {
		t.Fatal(err)
	}

	said := readLog(t, path)
	want := []string{
		"starting", "ready", "status changed", "not as wanted", "applied Install 1.0.0",
		"waits for approval Upgrade 1.1.0", "repaired", "applied Upgrade 1.1.0",
	}
	for _, line := range want {
		if !slices.ContainsFunc(said, func(s string) bool { return strings.HasPrefix(s, line) }) {
			t.Errorf("the log does not say %q", line)
		}
	}
	applied := slices.DeleteFunc(slices.Clone(said), func(s string) bool { return !strings.HasPrefix(s, "applied ") })
	if len(applied) != 2 {
		t.Errorf("the log says %q, want one install and one upgrade", applied)
	}
	if t.Failed() {
		t.Logf("the log says:\n%s", strings.Join(said, "\n"))
	}
}

// brokenCatalog makes a catalog whose image does not exist.
func brokenCatalog(t *testing.T, name string) {
	t.Helper()
	if err := theSuite.CreateCatalog(t.Context(), name, catalogRef(name, "none"), func(catalog *ocv1.ClusterCatalog) {
		catalog.Labels = map[string]string{"test": name}
	}); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { remove(t, &ocv1.ClusterCatalog{ObjectMeta: metav1.ObjectMeta{Name: name}}) })
	eventually(t, "catalog "+name, func(ctx context.Context) error {
		found := &ocv1.ClusterCatalog{}
		if err := theSuite.Admin.Get(ctx, client.ObjectKey{Name: name}, found); err != nil {
			return err
		}
		if ready := meta.FindStatusCondition(found.Status.Conditions, ocv1.TypeReady); ready == nil || ready.Status != metav1.ConditionFalse {
			return fmt.Errorf("conditions are %+v", found.Status.Conditions)
		}
		return nil
	})
}

// readLog gives what each line says. Lines that are not JSON, errors and stacks have
// no place in it.
func readLog(t *testing.T, path string) []string {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var said []string
	for line := range strings.Lines(string(data)) {
		var entry struct {
			Level      string `json:"level"`
			Msg        string `json:"msg"`
			Action     string `json:"action"`
			Version    string `json:"version"`
			Stacktrace string `json:"stacktrace"`
		}
		if err := json.Unmarshal([]byte(line), &entry); err != nil {
			t.Errorf("%v: %s", err, line)
			continue
		}
		if entry.Level != "info" || entry.Stacktrace != "" {
			t.Errorf("unexpected: %s", line)
		}
		said = append(said, strings.TrimSpace(strings.Join([]string{entry.Msg, entry.Action, entry.Version}, " ")))
	}
	return said
}
