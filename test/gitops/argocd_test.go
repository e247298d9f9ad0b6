package gitops_test

import (
	"fmt"
	"path/filepath"
	"slices"
	"testing"

	"k8s.io/apimachinery/pkg/apis/meta/v1/unstructured"
)

// TestArgoCD takes the extension of the examples through its life, as Argo CD sees it.
//
//nolint:paralleltest // examples have names of their own, and tests take turns with them
func TestArgoCD(t *testing.T) {
	needEngines(t)
	files := newRepository(t)
	startArgoCD(t, files)
	extensions, catalogs := record(t, extensionKind, "sample-operator"), record(t, catalogKind, "sample-catalog")
	applications, root := record(t, applicationKind, "sample-operator"), record(t, applicationKind, "extensions")
	kubectl(t, "apply", "-f", filepath.Join(files.dir, "argocd", "root.yaml"))

	step(t, "E1 it is installed", func(t *testing.T) {
		applications.await(t, 0, "Synced and Healthy", isSettled)
		root.await(t, 0, "Synced and Healthy", isSettled)
	})
	widgets := record(t, widgetKind, "first")
	step(t, "E2 custom resources come when it is ready", func(t *testing.T) {
		ready := extensions.await(t, 0, "Ready", hasCondition("Ready", "True"))
		before(t, ready, "the extension is ready, then the Widget comes", widgets.await(t, 0, "made", func(event) bool { return true }))
	})
	step(t, "E5 an upgrade that waits for approval is Healthy", func(t *testing.T) {
		const asked = "version: 1.1.0\n      upgradeApproval: Manual\n"
		edited := now(t)
		files.replace(t, extensionFile, "version: 1.0.0\n", asked)
		waits := extensions.await(t, edited, "ApprovalPending", hasReason("Ready", "ApprovalPending"))
		applications.await(t, waits.revision, "Synced and Healthy", isSettled)
		for _, e := range applications.since(waits.revision) {
			if health := healthOf(e.object); health != "Healthy" {
				t.Errorf("the Application is %s while somebody is asked: %v", health, e.object.Object["status"])
			}
		}
		back := now(t)
		files.replace(t, extensionFile, asked, "version: 1.0.0\n")
		ready := extensions.await(t, back, "Succeeded", hasReason("Ready", "Succeeded"))
		applications.await(t, ready.revision, "Synced and Healthy", isSettled)
	})
	step(t, "E3 an upgrade is never Degraded", func(t *testing.T) {
		edited := now(t)
		files.want(t, "1.1.0")
		applications.await(t, edited, "Progressing", hasHealth("Progressing"))
		upgraded := extensions.await(t, edited, "1.1.0", isInstalled("1.1.0"))
		applications.await(t, upgraded.revision, "Synced and Healthy", isSettled)
		for _, e := range applications.since(edited) {
			if health := healthOf(e.object); !slices.Contains([]string{"Healthy", "Progressing"}, health) {
				t.Errorf("the Application is %s: %v", health, e.object.Object["status"])
			}
		}
	})
	step(t, "E4 a broken bundle is Degraded, and told", func(t *testing.T) {
		edited := now(t)
		files.want(t, broken)
		stalled := extensions.await(t, edited, "Stalled", hasCondition("Stalled", "True"))
		applications.await(t, edited, "Degraded with the message of the extension", func(e event) bool {
			return healthOf(e.object) == "Degraded" && hasResourceMessage(e.object, messageOf(stalled.object, "Stalled"))
		})
		mended := now(t)
		files.want(t, "1.1.0")
		ready := extensions.await(t, mended, "Ready", hasCondition("Ready", "True"))
		applications.await(t, ready.revision, "Synced and Healthy", isSettled)
	})
	step(t, "E6 an edit by hand is undone", func(t *testing.T) {
		edited := now(t)
		kubectl(t, "patch", "clusterextension", "sample-operator", "--type", "merge", "--patch", `{"spec": {"source": {"catalog": {"version": "1.x"}}}}`)
		extensions.await(t, edited, "edited", hasVersion("1.x"))
		undone := extensions.await(t, edited, "as in Git", hasVersion("1.1.0"))
		applications.await(t, undone.revision, "Synced and Healthy", isSettled)
	})
	step(t, "E7 it is removed last wave first", func(t *testing.T) {
		asked := now(t)
		kubectl(t, "delete", "--filename", filepath.Join(files.dir, "argocd", "root.yaml"), "--timeout", patience.String())
		extensionAsked := extensions.await(t, asked, "deletion", event.isBeingDeleted)
		extensionGone := extensions.await(t, asked, "gone", event.isDeleted)
		before(t, widgets.await(t, asked, "gone", event.isDeleted), "the Widget is gone, then the extension goes", extensionAsked)
		before(t, extensionGone, "the extension is gone, then the catalog goes", catalogs.await(t, asked, "deletion", event.isBeingDeleted))
	})
}

// isSettled says that an Application is Synced and Healthy, and that no operation goes on.
func isSettled(e event) bool {
	sync, _, _ := unstructured.NestedString(e.object.Object, "status", "sync", "status")
	phase, _, _ := unstructured.NestedString(e.object.Object, "status", "operationState", "phase")
	return sync == "Synced" && healthOf(e.object) == "Healthy" && phase == "Succeeded"
}

func hasHealth(health string) func(event) bool {
	return func(e event) bool { return healthOf(e.object) == health }
}

func healthOf(application *unstructured.Unstructured) string {
	health, _, _ := unstructured.NestedString(application.Object, "status", "health", "status")
	return health
}

// hasResourceMessage says whether the health of one of the Application's objects has exactly
// this message.
func hasResourceMessage(application *unstructured.Unstructured, message string) bool {
	resources, _, _ := unstructured.NestedSlice(application.Object, "status", "resources")
	return slices.ContainsFunc(resources, func(item any) bool {
		resource, _ := item.(map[string]any)
		told, _, _ := unstructured.NestedString(resource, "health", "message")
		return told == message && message != ""
	})
}

// hasVersion says whether the spec of an extension asks for these versions.
func hasVersion(versions string) func(event) bool {
	return func(e event) bool {
		found, _, _ := unstructured.NestedString(e.object.Object, "spec", "source", "catalog", "version")
		return found == versions
	}
}

// isInstalled says whether a version is installed and ready.
func isInstalled(version string) func(event) bool {
	return func(e event) bool {
		found, _, _ := unstructured.NestedString(e.object.Object, "status", "install", "bundle", "version")
		return found == version && hasCondition("Ready", "True")(e) && fmt.Sprint(conditionOf(e.object, "Ready")["observedGeneration"]) == fmt.Sprint(e.object.GetGeneration())
	}
}
