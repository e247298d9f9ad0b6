package e2e_test

import (
	"bytes"
	"context"
	"fmt"
	"slices"
	"strings"
	"testing"
	"testing/fstest"

	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
	"sigs.k8s.io/controller-runtime/pkg/client"

	ocv1 "github.com/clusterextensions/operator-controller/api/v1"
	"github.com/clusterextensions/operator-controller/internal/testkit"
)

// publishEdited publishes two versions, of which the second one is made of files
// with other texts in them.
func publishEdited(t *testing.T, name string, replacements map[string]string) {
	t.Helper()
	both := operators(name, "1.0.0", "1.1.0")
	pushBundle(t, both[0], both[0].Bundle())
	edited := both[1].Bundle()
	for path, file := range edited {
		for old, replacement := range replacements {
			file = &fstest.MapFile{Data: bytes.ReplaceAll(file.Data, []byte(old), []byte(replacement))}
		}
		edited[path] = file
	}
	pushBundle(t, both[1], edited)
	publishCatalog(t, name, testkit.Catalog(registryHost, both...))
}

func thing(name, namespace string, size int64) *unstructured.Unstructured {
	return &unstructured.Unstructured{Object: map[string]any{
		"apiVersion": name + ".test/v1", "kind": "Thing",
		"metadata": map[string]any{"namespace": namespace, "name": "stored"},
		"spec":     map[string]any{"size": size},
	}}
}

// TestUpgradeThatBreaksStoredObjectsWaits has a definition tightened while one
// object does not fit it, and goes on when the object does.
func TestUpgradeThatBreaksStoredObjectsWaits(t *testing.T) {
	t.Parallel()
	const name = "tightened"
	publishEdited(t, name, map[string]string{"size: {type: integer}": "size: {type: integer, maximum: 5}"})
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	object := thing(name, name, 7)
	eventually(t, "storing an object", func(ctx context.Context) error { return theSuite.Admin.Create(ctx, object) })

	update(t, name, version("1.1.0"))
	conditionContains(t, name, ocv1.TypeProgressing, `validating upgrade for CRD "things.tightened.test": v1: ^.spec.size: maximum: `)
	conditionContains(t, name, ocv1.TypeProgressing, `tightened/stored: spec.size: `)
	condition(t, name, ocv1.TypeInstalled, "True Succeeded: Installed bundle "+registryHost+"/tightened:v1.0.0 successfully")
	settings := &corev1.ConfigMap{}
	exists(t, settings, name, "settings")
	if settings.Data["version"] != "1.0.0" {
		t.Errorf("the refused upgrade has written %v", settings.Data)
	}

	object = thing(name, name, 5)
	if err := theSuite.Admin.Patch(t.Context(), object, client.MergeFrom(thing(name, name, 7))); err != nil {
		t.Fatal(err)
	}
	installed(t, name, "1.1.0")
	eventTells(t, name, "Preflight", "^.spec.size: maximum")
}

// TestUpgradeThatBreaksStoredObjectsCanBeExcepted has the same said, and done.
func TestUpgradeThatBreaksStoredObjectsCanBeExcepted(t *testing.T) {
	t.Parallel()
	const name = "excepted"
	publishEdited(t, name, map[string]string{"size: {type: integer}": "size: {type: integer, maximum: 5}"})
	extend(t, name, version("1.0.0"))
	installed(t, name, "1.0.0")
	eventually(t, "storing an object", func(ctx context.Context) error { return theSuite.Admin.Create(ctx, thing(name, name, 7)) })

	update(t, name, func(extension *ocv1.ClusterExtension) {
		version("1.1.0")(extension)
		extension.Spec.Install = &ocv1.ClusterExtensionInstallConfig{Preflight: &ocv1.PreflightConfig{
			CRDUpgradeSafety: &ocv1.CRDUpgradeSafetyPreflightConfig{
				Enforcement: ocv1.CRDUpgradeSafetyEnforcementStrict,
				Exceptions:  []ocv1.CRDUpgradeSafetyException{{CRD: "things.excepted.test", Check: "maximum"}},
			},
		}}
	})
	installed(t, name, "1.1.0")
	eventTells(t, name, "Preflight", "^.spec.size: maximum")
}

// TestUpgradeWithMoreRightsWaitsForApproval has the operator's rights grow.
func TestUpgradeWithMoreRightsWaitsForApproval(t *testing.T) {
	t.Parallel()
	const name = "growing"
	publishEdited(t, name, map[string]string{"verbs: [get, list, watch]": "verbs: [get, list, watch, delete]"})
	approved := func(version string) func(*ocv1.ClusterExtension) {
		return func(extension *ocv1.ClusterExtension) {
			extension.Spec.Install = &ocv1.ClusterExtensionInstallConfig{Preflight: &ocv1.PreflightConfig{
				Permissions: &ocv1.PermissionsPreflightConfig{Growth: ocv1.PermissionGrowthApprove, ApprovedVersion: version},
			}}
		}
	}
	extend(t, name, version("1.0.0"), approved(""))
	installed(t, name, "1.0.0")
	deploymentAvailable(t, name, name)

	update(t, name, version("1.x"))
	conditionContains(t, name, ocv1.TypeReady, `True ApprovalPending: "growing.v1.0.0" version "1.0.0" is installed`)
	conditionContains(t, name, ocv1.TypeReady, `the operator would gain: ServiceAccount "growing/growing": Namespace:"" APIGroups:[growing.test] Resources:[things] Verbs:[delete]`)
	conditionContains(t, name, ocv1.TypeReady, `set spec.install.preflight.permissions.approvedVersion to "1.1.0"`)
	condition(t, name, ocv1.TypeProgressing, "True Succeeded: Desired state reached")
	installed(t, name, "1.0.0")

	// What is installed is kept healthy while it waits.
	remove(t, &corev1.ConfigMap{ObjectMeta: metav1.ObjectMeta{Namespace: name, Name: "settings"}})
	exists(t, &corev1.ConfigMap{}, name, "settings")

	update(t, name, approved("1.1.0"))
	installed(t, name, "1.1.0")
	eventTells(t, name, "Preflight", "the operator gains")
}

// eventTells waits for an event about an extension that contains a text.
func eventTells(t *testing.T, extension, reason, text string) {
	t.Helper()
	eventually(t, fmt.Sprintf("event %s of %s", reason, extension), func(ctx context.Context) error {
		var events corev1.EventList
		if err := theSuite.Admin.List(ctx, &events, client.InNamespace(metav1.NamespaceDefault)); err != nil {
			return err
		}
		if !slices.ContainsFunc(events.Items, func(e corev1.Event) bool {
			return e.InvolvedObject.Name == extension && e.Reason == reason && strings.Contains(e.Message, text)
		}) {
			return fmt.Errorf("no event with %q among %d", text, len(events.Items))
		}
		return nil
	})
}
