package gitops_test

import (
	"context"
	"path/filepath"
	"strings"
	"testing"
	"time"
)

// atOnce is how long Flux may take to tell what the extension says: it asks for the status
// of objects every few seconds. Its timeout in the examples is ten minutes.
const atOnce = 20 * time.Second

// TestFlux takes the extension of the examples through its life, as Flux sees it.
//
//nolint:paralleltest // examples have names of their own, and tests take turns with them
func TestFlux(t *testing.T) {
	needEngines(t)
	files := newRepository(t)
	files.forFlux(t)
	files.push(t)
	startFlux(t)
	extensions := record(t, extensionKind, "sample-operator")
	operators := record(t, kustomizationKind, "sample-operator")
	kubectl(t, "apply", "-k", filepath.Join(files.dir, "flux"))

	step(t, "F1 custom resources come when it is ready", func(t *testing.T) {
		ready := extensions.await(t, 0, "Ready", hasCondition("Ready", "True"))
		operators.await(t, 0, "Ready", hasCondition("Ready", "True"))
		tellWidgetReady(t)
		before(t, ready, "the extension is ready, then the Widget comes", record(t, widgetKind, "first").await(t, 0, "made", func(event) bool { return true }))
		record(t, kustomizationKind, "sample-widgets").await(t, 0, "Ready", hasCondition("Ready", "True"))
	})
	widgets := record(t, widgetKind, "first")
	step(t, "F2 an upgrade is never a failure", func(t *testing.T) {
		edited := now(t)
		files.want(t, "1.1.0")
		files.pushNow(t)
		extensions.await(t, edited, "Ready is Unknown", hasCondition("Ready", "Unknown"))
		upgraded := extensions.await(t, edited, "1.1.0", isInstalled("1.1.0"))
		operators.await(t, upgraded.revision, "Ready", hasCondition("Ready", "True"))
		for _, e := range operators.since(edited) {
			if isFailure(e) {
				t.Errorf("the Kustomization has failed: %v", conditionOf(e.object, "Ready"))
			}
		}
	})
	step(t, "F3 a broken bundle is a failure at once, and told", func(t *testing.T) {
		edited := now(t)
		files.want(t, broken)
		files.pushNow(t)
		stalled := extensions.await(t, edited, "Stalled", hasCondition("Stalled", "True"))
		failed := operators.await(t, stalled.revision, "failed", isFailure)
		if took := failed.at.Sub(stalled.at); took > atOnce {
			t.Errorf("it takes Flux %s to say that the extension is stalled", took)
		}
		// Flux tells which object has failed. It passes on the message of none.
		const told = "[ClusterExtension/sample-operator status: 'Failed']"
		if message := messageOf(failed.object, "Ready"); !strings.HasSuffix(message, told) {
			t.Errorf("Flux says %q, without %q", message, told)
		}
		mended := now(t)
		files.want(t, "1.1.0")
		files.pushNow(t)
		extensions.await(t, mended, "Ready", hasCondition("Ready", "True"))
		operators.await(t, mended, "Ready", hasCondition("Ready", "True"))
	})
	step(t, "F4 an extension that is suspended is nothing to wait for", func(t *testing.T) {
		edited := now(t)
		files.replace(t, extensionFile, "spec:\n", "spec:\n  suspend: true\n")
		files.pushNow(t)
		suspended := extensions.await(t, edited, "Suspended", hasReason("Ready", "Suspended"))
		operators.await(t, suspended.revision, "Ready", hasCondition("Ready", "True"))
		for _, e := range operators.since(edited) {
			if isFailure(e) {
				t.Errorf("the Kustomization has failed: %v", conditionOf(e.object, "Ready"))
			}
		}
		back := now(t)
		files.replace(t, extensionFile, "spec:\n  suspend: true\n", "spec:\n")
		files.pushNow(t)
		resumed := extensions.await(t, back, "Succeeded", hasReason("Ready", "Succeeded"))
		operators.await(t, resumed.revision, "Ready", hasCondition("Ready", "True"))
	})
	step(t, "F5 it is removed before its Kustomization", func(t *testing.T) {
		asked := now(t)
		kubectl(t, "delete", "--filename", filepath.Join(files.dir, "flux", "widgets.yaml"), "--timeout", patience.String())
		kubectl(t, "delete", "--filename", filepath.Join(files.dir, "flux", "operator.yaml"), "--timeout", patience.String())
		kubectl(t, "delete", "-k", filepath.Join(files.dir, "flux"), "--ignore-not-found", "--timeout", patience.String())
		extensionGone := extensions.await(t, asked, "gone", event.isDeleted)
		before(t, widgets.await(t, asked, "gone", event.isDeleted), "the Widget is gone, then the extension goes", extensions.await(t, asked, "deletion", event.isBeingDeleted))
		before(t, extensionGone, "the extension is gone, then its Kustomization goes", operators.await(t, asked, "gone", event.isDeleted))
	})
}

// isFailure says that a Kustomization has failed. One that waits for another is not ready,
// either.
func isFailure(e event) bool {
	return hasCondition("Ready", "False")(e) && conditionOf(e.object, "Ready")["reason"] != "DependencyNotReady"
}

// tellWidgetReady does what the sample operator would do: its pods are simulated.
func tellWidgetReady(t *testing.T) {
	t.Helper()
	eventually(t, "the status of a Widget", func(ctx context.Context) error {
		return theSuite.Kubectl(ctx, "patch", "widgets.sample.clusterextensions.dev", "first", "--namespace", "sample-operator",
			"--subresource", "status", "--type", "merge", "--patch", `{"status": {"ready": true}}`)
	})
}
